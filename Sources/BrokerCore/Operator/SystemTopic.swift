import BrokerAPI
import Authorization

/// One of the broker's own topics below `$SYS/broker/`. The names follow mosquitto(8).
package struct SystemTopic {
    /// The whole topic name.
    package let name: [UInt8]
    /// The payload, as text.
    package let value: (BrokerFigures, LoadAverages) -> String

    package init(_ name: String, value: @escaping (BrokerFigures, LoadAverages) -> String) {
        self.name = Array("$SYS/broker/\(name)".utf8)
        self.value = value
    }

    private init(_ name: String, _ path: @escaping (BrokerFigures) -> UInt64) {
        self.init(name) { figures, _ in "\(path(figures))" }
    }

    private init(_ name: String, _ path: @escaping (BrokerFigures) -> Int) {
        self.init(name) { figures, _ in "\(path(figures))" }
    }

    /// True for `$SYS` and all topics below it, to which only the broker publishes.
    package static func isReserved(_ topic: UnsafeRawBufferPointer) -> Bool {
        topic.starts(with: "$SYS".utf8) && (topic.count == 4 || topic[4] == UInt8(ascii: "/"))
    }

    /// True for topics to which no client may publish.
    package static func isClosedToClients(_ topic: UnsafeRawBufferPointer) -> Bool {
        ClosedTopics.contains(topic)
    }

    /// Every topic, in the order in which they are published.
    package static func all() -> [SystemTopic] { state + traffic + load }

    private static var state: [SystemTopic] {
        [
            SystemTopic("version") { figures, _ in "hermes version \(figures.version)" },
            SystemTopic("uptime") { figures, _ in "\(figures.uptimeSeconds) seconds" },
            SystemTopic("clients/connected") { $0.connections },
            SystemTopic("clients/disconnected") { $0.absentClients },
            SystemTopic("clients/expired") { $0.sessionsExpired },
            SystemTopic("clients/maximum") { $0.connectionsPeak },
            SystemTopic("clients/total") { $0.sessions },
            SystemTopic("subscriptions/count") { $0.subscriptions },
            SystemTopic("shared_subscriptions/count") { $0.sharedSubscriptions },
            SystemTopic("retained messages/count") { $0.retained },
            SystemTopic("messages/stored") { $0.storedMessages },
            SystemTopic("store/messages/count") { $0.storedMessages },
            SystemTopic("messages/inflight") { $0.inFlight },
            SystemTopic("heap/current") { $0.process.residentBytes },
            SystemTopic("heap/maximum") { $0.process.peakResidentBytes },
        ]
    }

    private static var traffic: [SystemTopic] {
        [
            SystemTopic("messages/received") { $0.packetsReceived },
            SystemTopic("messages/sent") { $0.packetsSent },
            SystemTopic("publish/messages/received") { $0.publishesReceived.total },
            SystemTopic("publish/messages/sent") { $0.publishesSent.total },
            SystemTopic("publish/messages/dropped") { $0.droppedTotal },
            SystemTopic("publish/bytes/received") { $0.publishBytesReceived },
            SystemTopic("publish/bytes/sent") { $0.publishBytesSent },
            SystemTopic("bytes/received") { $0.bytesReceived },
            SystemTopic("bytes/sent") { $0.bytesSent },
        ]
    }

    private static var load: [SystemTopic] {
        LoadAverages.Quantity.allCases.flatMap { quantity in
            LoadAverages.Span.allCases.map { span in
                SystemTopic("load/\(quantity.name)/\(span.rawValue)min") { _, load in
                    hundredths(load[quantity, span])
                }
            }
        }
    }

    /// Two decimal places, rounded.
    private static func hundredths(_ value: Double) -> String {
        let rounded = UInt64((value * 100).rounded())
        let cents = rounded % 100
        return "\(rounded / 100).\(cents < 10 ? "0" : "")\(cents)"
    }
}

extension LoadAverages.Quantity {
    fileprivate var name: String {
        switch self {
        case .connections: "connections"
        case .sockets: "sockets"
        case .packetsReceived: "messages/received"
        case .packetsSent: "messages/sent"
        case .publishesReceived: "publish/received"
        case .publishesSent: "publish/sent"
        case .publishesDropped: "publish/dropped"
        case .bytesReceived: "bytes/received"
        case .bytesSent: "bytes/sent"
        }
    }
}

extension BrokerFigures {
    /// Sessions whose client is offline.
    fileprivate var absentClients: Int { max(0, sessions - connections) }
    /// Retained messages, and messages queued or in flight.
    fileprivate var storedMessages: Int { retained + queued + inFlight }
    fileprivate var droppedTotal: UInt64 { dropped.reduce(0) { $0 + $1.value } }
}
