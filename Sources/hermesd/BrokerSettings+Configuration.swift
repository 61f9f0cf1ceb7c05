import Addresses
import BrokerRuntime
import BrokerAPI
import CLinux
import ConfiguredFiles
import Logging
import OperatorConfiguration
import TLS

extension BrokerSettings {
    /// The settings of the data plane. `contexts` holds the certificates by listener, `nil` for
    /// plain TCP. `descriptorLimit` bounds `limits.max_connections` if that key is not set.
    init(
        _ configuration: HermesConfiguration, descriptorLimit: Int, contexts: [TLSContext?] = []
    ) {
        self.init()
        listeners = configuration.listeners.enumerated().map { index, listener in
            var settings = Listener(
                address: listener.address, port: listener.port,
                allowsAnonymous: configuration.allowsAnonymous(on: listener),
                tls: index < contexts.count ? contexts[index] : nil,
                proxies: listener.proxyFrom.map { text in
                    guard let network = IPNetwork(text) else {
                        preconditionFailure("\(text) was checked to be a network")
                    }
                    return network
                },
                webSocket: listener.transport == .webSocket ? WebSocket(listener.webSocket) : nil)
            settings.isIPv6Only = configuration.leavesIPv4ToOthers(listener)
            return settings
        }
        systemTopicInterval = configuration.sysInterval
        connectionLogLevel = Logger.Level(configuration.logging.connections)
        limits = BrokerLimits(configuration, descriptorLimit: descriptorLimit)
    }

    /// The listeners as the HTTP API shows them; `addresses` are those that they got, in order.
    func models(at addresses: [String]) -> [ListenerModel] {
        zip(listeners, addresses).map { listener, address in
            ListenerModel(
                address: address, tls: listener.tls != nil,
                webSocket: listener.webSocket.map { .init(path: $0.path, origins: $0.origins) })
        }
    }
}

extension BrokerSettings.WebSocket {
    fileprivate init(_ webSocket: HermesConfiguration.WebSocket) {
        self.init(
            path: webSocket.path, origins: webSocket.origins,
            readsTokenInQuery: [.query, .any].contains(webSocket.token),
            readsTokenInHeader: [.header, .any].contains(webSocket.token))
    }
}

extension BrokerLimits {
    /// Descriptors that are not for MQTT clients: HTTP connections, listeners, log, store. Of few,
    /// clients get a quarter.
    private static func reservedDescriptors(of limit: Int) -> Int { min(384, limit * 3 / 4) }

    /// The configured limits; unset ones follow from this machine's memory and descriptors.
    init(_ configuration: HermesConfiguration, descriptorLimit: Int) {
        self = configuration.limits
        // Also without rules: a publication of the HTTP API may ask for a wake itself.
        wakeZones = SystemZones.load(now: hermes_wall_ms() / 1_000)
        keepsReceiptEvents = configuration.webhook.url != nil
        if maxConnections == nil {
            maxConnections = max(
                1, descriptorLimit - Self.reservedDescriptors(of: descriptorLimit))
        }
        if memory == .auto {
            let available = MachineMemory.available()
            memory = available.map { .bytes($0 / 100 * MachineMemory.usualPercent) } ?? .off
        }
    }
}
