import HermesClientCore

extension HermesClient {
    /// A message that ``HermesClient/publish(_:)`` has stored and the broker has not taken over.
    public struct OutgoingMessage: Hashable, Sendable, Identifiable {
        /// Names the message, also after a restart of the program.
        public let id: UInt64
        /// The message. Its payload is empty once the broker has it and only the last step of QoS 2
        /// is missing.
        public let message: Message
        /// The broker closed the connection, twice, upon a message with this topic: it is held back.
        /// One message of the topic is tried again after 5 s, then after four times as long each
        /// time, 4 hours at most; the others follow once the broker takes it.
        public let isHeldBack: Bool
    }

    /// The messages that the broker has not taken over: first those that are to be sent, in their
    /// order, then those that are held back.
    public func outbox() async -> [OutgoingMessage] {
        let messages = try? await engine.perform { engine in
            engine.machine.stored.outbox.messages.map { OutgoingMessage($0, isHeldBack: false) }
                + engine.machine.stored.outbox.held.map { OutgoingMessage($0, isHeldBack: true) }
        }
        return messages ?? []
    }

    /// Sends a message that is held back again, for example after the client's rights have changed.
    ///
    /// - Parameter id: ``OutgoingMessage/id``.
    /// - Returns: False if no such message is held back.
    @discardableResult
    public func retry(_ id: UInt64) async -> Bool {
        let isKnown = try? await engine.perform { engine in
            engine.handle { $0.retry(id, at: $1) }
        }
        return isKnown ?? false
    }

    /// Takes a message out of the outbox: it is not sent any more, unless it was on its way already.
    /// ``PublishReceipt/acknowledged`` throws ``HermesClientError/discarded``.
    ///
    /// - Parameter id: ``OutgoingMessage/id``.
    /// - Returns: False if there is no such message.
    @discardableResult
    public func discard(_ id: UInt64) async -> Bool {
        (try? await engine.perform { $0.discard(id) }) ?? false
    }
}

extension HermesClient.OutgoingMessage {
    init(_ message: HermesClientCore.OutgoingMessage, isHeldBack: Bool) {
        id = message.key
        self.message = HermesClient.Message(
            topic: String(decoding: message.topic, as: UTF8.self), payload: message.payload,
            qos: HermesClient.QoS(message.qos), retain: message.retain)
        self.isHeldBack = isHeldBack
    }
}
