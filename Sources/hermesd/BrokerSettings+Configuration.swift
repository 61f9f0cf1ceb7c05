import Broker
import Glibc
import OperatorConfiguration
import TLS
import Transport

extension BrokerSettings {
    /// Descriptors that are not for MQTT clients: the HTTP server's, listeners, logs, the store.
    private static var reservedDescriptors: Int { 320 }

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
        let limits = configuration.limits
        connectTimeout = limits.connectTimeout
        maxKeepAlive = limits.maxKeepAlive
        maxConnectPacketBytes = limits.maxConnectPacketBytes
        maxPacketBytes = limits.maxPacketBytes
        maxTopicLevels = limits.maxTopicLevels
        maxSubscriptions = UInt32(limits.maxSubscriptions)
        maxInFlight = UInt32(limits.maxInFlight)
        maxInboundQoS2 = UInt32(limits.maxInboundQoS2)
        maxUnacknowledgedPublishes = limits.maxUnacknowledgedPublishes
        maxUnacknowledgedPublishBytes = limits.maxUnacknowledgedPublishBytes
        queueMessages = UInt32(limits.queueMessages)
        queueBytes = limits.queueBytes
        queuePolicy = limits.queuePolicy == .dropOldest ? .dropOldest : .dropNewest
        maxSessions = limits.maxSessions
        maxRetained = limits.maxRetained
        retainedBytes = limits.retainedBytes
        sessionExpiry = limits.sessionExpiry
        maxConnections =
            limits.maxConnections ?? max(1, descriptorLimit - Self.reservedDescriptors)
        connectionsPerAddress = AddressLimit(limits.connectionsPerAddress)
        connectRate = limits.connectRate
        connectRatePerAddress = AddressLimit(limits.connectRatePerAddress)
        maxHandshakes = limits.maxHandshakes
        handshakesPerAddress = AddressLimit(limits.handshakesPerAddress)
        switch limits.memory {
        case .auto:
            memoryBytes = MachineMemory.available().map { $0 / 100 * MachineMemory.usualPercent }
        case .off: memoryBytes = nil
        case .bytes(let bytes): memoryBytes = bytes
        }
        unfinishedBytes = limits.unfinishedBytes
        outputBytes = limits.outputBytes
        drainTimeout = limits.drainTimeout
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

extension BrokerSettings.AddressLimit {
    init(_ limit: HermesConfiguration.AddressLimit) {
        switch limit {
        case .auto: self = .auto
        case .off: self = .off
        case .number(let most): self = .number(most)
        }
    }
}
