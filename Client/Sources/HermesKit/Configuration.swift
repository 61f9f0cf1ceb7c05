import HermesClientCore
import HermesClientMessages
import MQTTCodec

extension HermesClient {
    /// All that a client needs to know.
    public struct Configuration: Sendable {
        /// The broker's addresses, one or more. A random one is tried first, later the one that served
        /// last; the others follow at once if it does not answer within 5 s.
        public var servers: [Server]
        /// Names the client to the broker, for good: the session belongs to it. 1 to 65,535 bytes
        /// of UTF-8 without U+0000; brokers may allow fewer.
        public var clientID: String
        /// User name and password, or where to get them.
        public var credentials: Credentials
        /// The file that survives a restart of the program.
        public var storage: Storage
        /// 120 s by default.
        public var heartbeat = Heartbeat.fixed(seconds: 120)
        /// The broker keeps the session while the client is away, and with it what comes for it.
        /// With false each connection has a session of its own: what comes between two connections
        /// is lost, of which only sequences tell. Subscriptions and what is published are kept as
        /// ever.
        public var keepsSession = true
        /// The message that the broker publishes when a connection ends without a goodbye: a phone
        /// that has lost its network, though it may be back in seconds. ``HermesClient/stop()`` and
        /// the background say goodbye. Its payload has 65,535 bytes at most.
        public var will: Message?
        /// The client publishes what it counted to `hermes/reports/<clientID>`, hourly and on
        /// entering the background.
        public var sendsReports = true
        /// Called with each line for a log, on the client's event loop: it must return soon, and
        /// must not wait for the client.
        public var log: (@Sendable (LogLine) -> Void)?

        /// - Parameters:
        ///   - server: see ``Server``.
        ///   - clientID: see ``clientID``.
        ///   - credentials: none by default.
        ///   - storage: a file, or none.
        public init(
            _ server: Server, clientID: String, credentials: Credentials = .none, storage: Storage
        ) {
            self.init([server], clientID: clientID, credentials: credentials, storage: storage)
        }

        /// - Parameters:
        ///   - servers: addresses of one broker, or of brokers that share its sessions; see ``servers``.
        ///   - clientID: see ``clientID``.
        ///   - credentials: none by default.
        ///   - storage: a file, or none.
        public init(
            _ servers: [Server], clientID: String, credentials: Credentials = .none,
            storage: Storage
        ) {
            self.servers = servers
            self.clientID = clientID
            self.credentials = credentials
            self.storage = storage
        }
    }

    /// The silence after which the client asks the broker for a sign of life.
    public enum Heartbeat: Hashable, Sendable {
        /// Seconds, 10 to 3,600.
        case fixed(seconds: UInt16)
        /// 120 to 580 s, learned for each network that ``HermesClient/networkChanged(to:)`` names.
        case smart
    }

    /// The guarantee of delivery, MQTT 3.1.1, section 4.3.
    public enum QoS: UInt8, Hashable, Sendable, Comparable {
        /// Gone with the connection.
        case atMostOnce = 0
        /// Arrives; a message without sequence or name perhaps twice.
        case atLeastOnce = 1
        /// Arrives once.
        case exactlyOnce = 2

        /// By the strength of the guarantee.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

        var coreQoS: MQTTCodec.QoS {
            switch self {
            case .atMostOnce: .atMostOnce
            case .atLeastOnce: .atLeastOnce
            case .exactlyOnce: .exactlyOnce
            }
        }

        init(_ qos: MQTTCodec.QoS) {
            switch qos {
            case .atMostOnce: self = .atMostOnce
            case .atLeastOnce: self = .atLeastOnce
            case .exactlyOnce: self = .exactlyOnce
            }
        }
    }
}

extension HermesClient.Configuration {
    func coreSettings() throws -> ClientSettings {
        let identifier = Array(clientID.utf8)
        guard 1...Int(UInt16.max) ~= identifier.count, !identifier.contains(0) else {
            throw HermesClientError.configuration(
                "clientID has \(identifier.count) bytes or holds U+0000; "
                    + "it must have 1 to 65,535 bytes of UTF-8 without U+0000")
        }
        if case .fixed(let seconds) = heartbeat, !(10...3_600).contains(seconds) {
            throw HermesClientError.configuration(
                "a heartbeat of \(seconds) s is not possible; choose 10 to 3,600 s")
        }
        var settings = ClientSettings(
            clientID: identifier,
            readFacts: { MessageReader.facts(topic: $0, payload: $1) })
        guard !servers.isEmpty else {
            throw HermesClientError.configuration(
                "no server is given; the client needs one address of its broker at least")
        }
        settings.addresses = servers.count
        settings.keepsSession = keepsSession
        settings.will = try will.map { will in
            let checked = ClientWill(
                topic: Array(will.topic.utf8), payload: will.payload, qos: will.qos.coreQoS,
                retain: will.retain)
            guard let checked else {
                throw HermesClientError.configuration(
                    "the will has no topic name, or a payload of \(will.payload.count) bytes; "
                        + "65,535 are possible")
            }
            return checked
        }
        settings.credentials = try credentials.first?.checked().clientCredentials
        settings.asksForCredentials = credentials.provider != nil
        settings.heartbeat =
            switch heartbeat {
            case .fixed(let seconds): .fixed(seconds: seconds)
            case .smart: .smart
            }
        return settings
    }

    /// `nil` if there are to be no reports, or the client's name cannot stand in a topic name.
    var reportTopic: [UInt8]? {
        guard sendsReports, !clientID.contains(where: { $0 == "+" || $0 == "#" }) else {
            return nil
        }
        return Array("hermes/reports/\(clientID)".utf8)
    }
}
