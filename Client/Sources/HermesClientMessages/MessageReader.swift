import HermesClientCore
import SwiftProtobuf

/// Reads messages of the broker's own making (`hermes.v1.Envelope`).
package enum MessageReader {
    /// The Envelope that a payload holds; `nil` for any other payload.
    ///
    /// Random bytes may decode as an Envelope. One of the broker's repeats its topic and has a name.
    package static func envelope(topic: [UInt8], payload: [UInt8]) -> Hermes_V1_Envelope? {
        guard let envelope = try? Hermes_V1_Envelope(serializedBytes: payload),
            !envelope.messageID.isEmpty, envelope.topic.utf8.elementsEqual(topic)
        else { return nil }
        return envelope
    }

    /// The part of a payload that tells one message from another, for the core.
    package static func facts(topic: [UInt8], payload: [UInt8]) -> MessageFacts? {
        guard let envelope = envelope(topic: topic, payload: payload) else { return nil }
        guard envelope.sequence > 0, !envelope.channel.isEmpty else {
            return .named(Array(envelope.messageID.utf8))
        }
        return .sequenced(
            SequenceNumbers(
                channel: Array(envelope.channel.utf8), sequence: envelope.sequence,
                publishedAtMilliseconds: envelope.publishedAtMs,
                superseded: envelope.supersedesSequence))
    }
}
