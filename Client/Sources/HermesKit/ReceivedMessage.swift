import HermesClientCore
import HermesClientMessages
import MQTTCodec

extension HermesClient {
    /// A message as it came.
    public struct ReceivedMessage: Hashable, Sendable {
        /// The topic name.
        public let topic: String
        /// The payload of PUBLISH, byte for byte. That of a message of the broker's own making is
        /// an encoded ``envelope``.
        public let payload: [UInt8]
        /// The QoS at which the broker delivered it.
        public let qos: QoS
        /// It is the broker's retained message, which came because of a new subscription.
        public let isRetained: Bool
        /// The message that the broker made of what a back office told it over HTTP; `nil` for a
        /// payload of another kind.
        public let envelope: Envelope?
        /// When it came: UNIX time in milliseconds.
        public let receivedAtMilliseconds: Int64

        init(_ message: InboundMessage) {
            topic = String(decoding: message.topic, as: UTF8.self)
            payload = message.payload
            qos = QoS(message.qos)
            isRetained = message.retain
            // Without facts the core found no Envelope.
            envelope =
                message.facts == nil
                ? nil
                : MessageReader.envelope(topic: message.topic, payload: message.payload)
                    .map { Envelope($0) }
            receivedAtMilliseconds = SystemClock.unixMilliseconds
        }

        /// An order status in the JSON of proto3's mapping, or a payload that its Envelope calls
        /// `application/json`; `nil` for every other message.
        public var json: String? {
            guard let envelope else { return nil }
            if envelope.contentType.utf8.starts(with: "application/json".utf8) {
                return String(decoding: envelope.payload, as: UTF8.self)
            }
            return OrderStatusReader.update(
                contentType: envelope.contentType, payload: envelope.payload
            ).flatMap { OrderStatusReader.json($0) }
        }

        /// Where an order stands, if the message tells that.
        public var orderStatus: OrderStatusUpdate? {
            guard let envelope else { return nil }
            return OrderStatusReader.update(
                contentType: envelope.contentType, payload: envelope.payload
            ).map { OrderStatusUpdate($0) }
        }
    }

    /// A message of the broker's own making: `hermes.v1.Envelope`.
    public struct Envelope: Hashable, Sendable {
        /// Names the message for good.
        public let messageID: String
        /// Names the series that ``sequence`` counts in; empty for none.
        public let channel: String
        /// Counts from 1 in the channel, one by one; `nil` without a channel.
        public let sequence: UInt64?
        /// Sequences of messages that this one replaced before they were delivered.
        public let supersededSequences: [UInt64]
        /// When the broker took the message: UNIX time in milliseconds.
        public let publishedAtMilliseconds: Int64
        /// UNIX time in milliseconds; `nil` if it does not expire.
        public let expiresAtMilliseconds: Int64?
        /// A later message of the same topic and key replaces this one where it still waits; empty
        /// for none.
        public let collapseKey: String
        /// Media type of ``payload``.
        public let contentType: String
        /// The content, for example an encoded `hermes.v1.OrderStatusUpdate`.
        public let payload: [UInt8]
    }

    /// An order has reached a status: `hermes.v1.OrderStatusUpdate`.
    public struct OrderStatusUpdate: Hashable, Sendable {
        /// Names the order.
        public let orderID: String
        /// Names the sales person whose phone is to hear of it.
        public let salesID: String
        /// Where the order stands now.
        public let status: OrderStatus
        /// For people to read; may be empty.
        public let reason: String
        /// When the order reached the status: UNIX time in milliseconds.
        public let updatedAtMilliseconds: Int64
        /// Whatever else the back office tells.
        public let details: [String: String]
    }

    /// Where an order stands.
    public enum OrderStatus: Hashable, Sendable {
        /// The back office named none.
        case unspecified
        /// The order has been handed in.
        case submitted
        /// Somebody looks at it.
        case underReview
        /// Something is missing.
        case supplementRequired
        /// It is accepted.
        case approved
        /// It is refused.
        case rejected
        /// The contract is signed.
        case signed
        /// The money is paid out.
        case funded
        /// It was taken back.
        case cancelled
        /// A status that is younger than this program, by its number.
        case unknown(Int)
    }
}

extension HermesClient.Envelope {
    init(_ envelope: Hermes_V1_Envelope) {
        messageID = envelope.messageID
        channel = envelope.channel
        sequence = envelope.sequence == 0 ? nil : envelope.sequence
        supersededSequences = envelope.supersedesSequence
        publishedAtMilliseconds = envelope.publishedAtMs
        expiresAtMilliseconds = envelope.expiresAtMs == 0 ? nil : envelope.expiresAtMs
        collapseKey = envelope.collapseKey
        contentType = envelope.contentType
        payload = Array(envelope.payload)
    }
}

extension HermesClient.OrderStatusUpdate: Identifiable {
    /// ``orderID``, for lists.
    public var id: String { orderID }

    init(_ update: Hermes_V1_OrderStatusUpdate) {
        orderID = update.orderID
        salesID = update.salesID
        status = HermesClient.OrderStatus(update.status)
        reason = update.reason
        updatedAtMilliseconds = update.updatedAtMs
        details = update.details
    }
}

extension HermesClient.OrderStatus {
    init(_ status: Hermes_V1_OrderStatus) {
        self =
            switch status {
            case .unspecified: .unspecified
            case .submitted: .submitted
            case .underReview: .underReview
            case .supplementRequired: .supplementRequired
            case .approved: .approved
            case .rejected: .rejected
            case .signed: .signed
            case .funded: .funded
            case .cancelled: .cancelled
            case .UNRECOGNIZED(let number): .unknown(number)
            }
    }
}
