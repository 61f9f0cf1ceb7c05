import BrokerAPI

/// A push as its caller asks for it, checked.
struct PushOrder: Sendable {
    let request: PushRequest
    let id: MessageID
    /// True when the caller asks for receipts in so many words, not by leaving the field out.
    let insistsOnReceipts: Bool
    /// True when nothing is to be sent.
    let isDryRun: Bool
    /// Why it cannot begin unless it did before; `nil` for nothing.
    let obstacle: Problem?

    /// Longest time over which a push is spread, in seconds.
    static let mostSpreadSeconds: Int64 = 86_400

    static let fields = JSONFields.Known(
        [
            "to", "message", "deliver_at", "deliver_in_s", "spread_s", "dry_run",
            "idempotency_key",
        ].map { JSONFields.Name(canonical: $0) })

    private static let messageFields = JSONFields.Known(
        [
            "topic", "payload", "payload_base64", "qos", "message_id", "expires_in_s", "receipts",
            "wake", "properties",
        ]
        .map { JSONFields.Name(canonical: $0) })

    /// - Parameters:
    ///   - fields: The body's members.
    ///   - publisher: Makes the identifier, and has the clock.
    ///   - maximumTopicLevels: `limits.max_topic_levels`.
    ///   - key: The caller's key; `nil` for none.
    ///   - caller: To whom the key belongs.
    /// - Throws: ``Problem`` that names the field at fault.
    init(
        _ fields: JSONFields, _ publisher: Publisher, maximumTopicLevels: Int, key: String?,
        caller: Caller?
    ) throws(Problem) {
        guard let message = try fields.object("message", known: Self.messageFields) else {
            throw fields.wrong(
                "message", "is missing",
                fix: "Add \"message\" with an object that has a topic and a payload.")
        }
        let target = try PushTarget(fields)
        let topic = try PublishTopic(
            try message.requiredString("topic"), maximumLevels: maximumTopicLevels,
            field: "message.topic")
        let seconds = try message.integer("expires_in_s", in: Publisher.expirySeconds)
        let spread = try fields.integer("spread_s", in: 0...Self.mostSpreadSeconds) ?? 0
        id = publisher.messageID(try message.messageID())
        var publication = Publication(
            topic: topic.bytes, payload: try message.payload(),
            qos: Publisher.qos(try message.integer("qos", in: 0...2)))
        publication.wake = try message.wake()
        publication.properties = try message.properties(of: publication.payload)
        let receipts = try message.bool("receipts")
        if receipts != false { publication.receiptID = Array(id.text.utf8) }
        let delivery = try fields.delivery(now: publisher.now())
        publication.identity = PublishIdentity(
            of: publication, expiresInSeconds: seconds, id: id, key: key, caller: caller,
            delivery: delivery?.meaning,
            push: target.digestParts + [Array("\(spread)".utf8)])
        request = PushRequest(
            publication: publication, pushID: Array(id.text.utf8), target: target,
            deliverAtMs: delivery?.atMs,
            expiresInMs: (seconds ?? 0) * 1_000, spreadMs: spread * 1_000)
        obstacle = delivery?.obstacle
        insistsOnReceipts = receipts == true
        isDryRun = try fields.bool("dry_run") ?? false
    }
}
