import CHermesProtos

/// A message that the broker itself makes (`hermes.v1.Envelope`), before its sequence number is
/// known.
///
/// The sequence number is assigned with the commit that stores the message. The data plane appends
/// it to the encoded bytes: see ``sequenceTag``.
package struct Envelope: Hashable, Sendable {
    package var messageID: String
    package var topic: String
    /// The series of messages that the sequence number counts in.
    package var channel: String
    /// UNIX time in milliseconds.
    package var publishedAtMs: Int64
    /// UNIX time in milliseconds after which the message is not delivered; `nil` when it does not
    /// expire.
    package var expiresAtMs: Int64?
    /// The publisher's key by which the message replaces queued ones; empty replaces nothing.
    package var collapseKey: String
    /// Media type of `payload`.
    package var contentType: String
    package var payload: [UInt8]

    /// The tag byte of the field `sequence`: number 14, varint. Appending this byte and a varint to
    /// ``encoded()`` sets the sequence number and keeps the fields in ascending order; fields
    /// `supersedes_sequence`, whose number is the next one, may follow.
    package static let sequenceTag: UInt8 = 14 << 3

    package init(
        messageID: String, topic: String, channel: String, publishedAtMs: Int64,
        expiresAtMs: Int64? = nil, collapseKey: String = "", contentType: String,
        payload: [UInt8]
    ) {
        self.messageID = messageID
        self.topic = topic
        self.channel = channel
        self.publishedAtMs = publishedAtMs
        self.expiresAtMs = expiresAtMs
        self.collapseKey = collapseKey
        self.contentType = contentType
        self.payload = payload
    }

    /// Encodes the message without `sequence` and `supersedes_sequence`.
    ///
    /// - Throws: ``MessageEncodingError`` when a text holds NUL, which protobuf-c cannot carry.
    package func encoded() throws(MessageEncodingError) -> [UInt8] {
        var arena = ProtobufArena()
        var message = Hermes__V1__Envelope()
        hermes__v1__envelope__init(&message)
        message.message_id = try arena.string(messageID, field: "message_id")
        message.topic = try arena.string(topic, field: "topic")
        message.channel = try arena.string(channel, field: "channel")
        message.published_at_ms = publishedAtMs
        message.expires_at_ms = expiresAtMs ?? 0
        message.collapse_key = try arena.string(collapseKey, field: "collapse_key")
        message.content_type = try arena.string(contentType, field: "content_type")
        let bytes = arena.bytes(payload)
        message.payload = ProtobufCBinaryData(len: bytes.count, data: bytes.baseAddress)

        let size = hermes__v1__envelope__get_packed_size(&message)
        return arena.packed(size) { hermes__v1__envelope__pack(&message, $0) }
    }
}
