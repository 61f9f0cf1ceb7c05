import BrokerRuntime
import BrokerAPI
import Glibc
import OperatorConfiguration
import TLS
import Transport

extension BrokerSettings {
    /// The data plane's part of the configuration. `descriptorLimit` bounds the connections that the
    /// operator left open.
    /// `contexts` are the listeners' certificates, `nil` for each that serves plain TCP.
    init(
        _ configuration: HermesConfiguration, descriptorLimit: Int, contexts: [TLSContext?] = []
    ) {
        self.init()
        listeners = configuration.listeners.enumerated().map { index, listener in
            Listener(
                address: listener.address, port: listener.port,
                allowsAnonymous: configuration.allowsAnonymous(on: listener),
                tls: index < contexts.count ? contexts[index] : nil,
                proxies: listener.proxyFrom.map { text in
                    guard let network = PeerNetwork(text) else {
                        preconditionFailure("\(text) was checked to be a network")
                    }
                    return network
                })
        }
        systemTopicInterval = configuration.sysInterval
        limits = BrokerLimits(configuration, descriptorLimit: descriptorLimit)
    }
}

extension BrokerLimits {
    /// Descriptors that are not for MQTT clients: the HTTP server's, listeners, logs, the store.
    private static var reservedDescriptors: Int { 320 }

    /// The limits of a configuration; those that the operator left to the broker become what this machine
    /// has.
    init(_ configuration: HermesConfiguration, descriptorLimit: Int) {
        self = configuration.limits
        if maxConnections == nil {
            maxConnections = max(1, descriptorLimit - Self.reservedDescriptors)
        }
        if memory == .auto {
            let available = MachineMemory.available()
            memory = available.map { .bytes($0 / 100 * MachineMemory.usualPercent) } ?? .off
        }
    }

    /// Raises the descriptor limit as far as it may go, and returns it.
    static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return 1_024
        }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        _ = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }
}
