extension HermesClient {
    /// A message for the broker.
    public struct Message: Hashable, Sendable {
        /// 1 to 65,535 bytes of UTF-8, without `+`, `#` and U+0000.
        public var topic: String
        /// With the topic a little less than 1 MiB.
        public var payload: [UInt8]
        /// 1 by default: it arrives, and after a lost acknowledgement perhaps twice.
        public var qos: QoS
        /// The broker keeps it for those who subscribe later.
        public var retain: Bool

        /// A message with any bytes as payload.
        public init(topic: String, payload: [UInt8], qos: QoS = .atLeastOnce, retain: Bool = false)
        {
            self.topic = topic
            self.payload = payload
            self.qos = qos
            self.retain = retain
        }

        /// A message with a text in UTF-8 as payload.
        public init(topic: String, text: String, qos: QoS = .atLeastOnce, retain: Bool = false) {
            self.init(topic: topic, payload: Array(text.utf8), qos: qos, retain: retain)
        }
    }

    /// A message that ``HermesClient/publish(_:)`` has stored.
    public struct PublishReceipt: Sendable {
        let outcome: Outcome<Void>?
        let engine: EngineReference

        /// Returns when the broker has taken the message over, by PUBACK or PUBCOMP; at once for
        /// QoS 0, which nobody acknowledges. May be awaited by several tasks, or by none.
        ///
        /// - Throws: ``HermesClientError/stopped(_:)`` while the client is stopped, and
        ///   `CancellationError`; the message is kept and sent in either case, and this may be
        ///   awaited again. ``HermesClientError/discarded`` after ``HermesClient/discard(_:)``.
        public var acknowledged: Void {
            get async throws {
                // Calls of before, such as start(), have their effect first.
                _ = try? await engine.perform { _ in }
                try await outcome?.value
            }
        }
    }

    /// A message for the app, with all that ``ReceivedMessage`` holds.
    @dynamicMemberLookup
    public struct Delivery: Sendable {
        /// The message as it came.
        public let message: ReceivedMessage

        private let number: UInt64
        private let inlet: DeliveryInlet

        init(_ message: ReceivedMessage, number: UInt64, inlet: DeliveryInlet) {
            self.message = message
            self.number = number
            self.inlet = inlet
        }

        /// What ``message`` holds, without the detour: `delivery.topic`.
        public subscript<Value>(dynamicMember path: KeyPath<ReceivedMessage, Value>) -> Value {
            message[keyPath: path]
        }

        /// The app is done with the message: the broker learns it, and the message does not come
        /// again. A second call does nothing.
        ///
        /// Call it for every message. Some 20 that are not acknowledged, and the broker sends **no
        /// more at all**; ``HermesClient/Event/unacknowledged(topic:milliseconds:count:)`` names the
        /// oldest of them after a minute. They come again after a restart of the program.
        public func acknowledge() { inlet.acknowledge(number) }
    }
}
