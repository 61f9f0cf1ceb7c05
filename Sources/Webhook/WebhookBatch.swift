import BrokerAPI
import Credentials
import FoundationEssentials

/// Events that one request carries, in their order.
///
/// A repeat sends the same bytes under the same name, so that the receiver knows it again.
struct WebhookBatch: Sendable {
    /// The most events of a batch.
    static let mostEvents = 256
    /// The most bytes of a batch's events. A single event may be longer: a topic name and a client
    /// identifier have up to 64 KiB each, and six times that when every byte is escaped.
    static let mostBytes = 1 << 20

    /// The JSON document.
    let body: [UInt8]
    /// The name of the batch: a digest of its events, so that it is the same after a restart.
    let delivery: String
    let count: Int
    /// The number of the last event.
    let last: UInt64

    /// Takes as many of the first events as fit; `nil` without events.
    init?(_ events: [ReceiptEvent]) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var list: [UInt8] = []
        var count = 0
        for event in events.prefix(Self.mostEvents) {
            guard let text = try? encoder.encode(EventModel(event)) else {
                preconditionFailure("an event of texts and numbers is no JSON")
            }
            guard count == 0 || list.count + 1 + text.count <= Self.mostBytes else { break }
            if count > 0 { list.append(UInt8(ascii: ",")) }
            list += text
            count += 1
        }
        guard count > 0 else { return nil }
        delivery = String(SHA256Digest(of: list).hexadecimal.prefix(32))
        body = Array("{\"delivery\":\"\(delivery)\",\"events\":[".utf8) + list + Array("]}".utf8)
        self.count = count
        last = events[count - 1].number
    }
}

/// An event as the receiver reads it.
private struct EventModel: Encodable {
    let number: UInt64
    let messageID: String
    let topic: String
    let clientID: String
    let event: String
    let reason: String?
    let replacedBy: String?
    let atMs: Int64

    enum CodingKeys: String, CodingKey {
        case number
        case messageID = "message_id"
        case topic
        case clientID = "client_id"
        case event, reason
        case replacedBy = "replaced_by"
        case atMs = "at_ms"
    }

    init(_ event: ReceiptEvent) {
        number = event.number
        messageID = event.messageID
        topic = event.topic
        clientID = event.clientID
        self.event = event.outcome.rawValue
        reason = event.reason
        replacedBy = event.replacedBy
        atMs = event.atMs
    }
}
