import BrokerAPI
import Hummingbird

extension Route {
    /// `POST /v1/messages`: one message as JSON.
    static func message(_ publisher: Publisher, maximumTopicLevels: Int) -> Route {
        Route(
            method: .post, path: "/v1/messages",
            access: .scope(.publish, topics: .checked, rate: .messages), body: .json
        ) { request throws(Problem) in
            let fields = try JSONFields(try request.json(), known: messageFields)
            let message = try message(
                fields, publisher, maximumTopicLevels,
                key: try fields.idempotencyKey(header: request.idempotencyKey), request.caller)
            var response = Response.json(
                try await publisher.publish(message, for: request.caller))
            if message.publication.schedule != nil { response.status = .accepted }
            return response
        }
    }

    /// `POST /v1/messages/batch`: a line for each message.
    static func messages(_ publisher: Publisher, maximumTopicLevels: Int) -> Route {
        let work = MessageBatch(publisher: publisher) { line, caller throws(Problem) in
            let fields = try JSONFields(line: line, known: messageFields)
            return try message(
                fields, publisher, maximumTopicLevels, key: try fields.idempotencyKey(), caller)
        }
        return batch("/v1/messages/batch", publisher, work)
    }

    private static func message(
        _ fields: JSONFields, _ publisher: Publisher, _ maximumTopicLevels: Int, key: String?,
        _ caller: Caller?
    ) throws(Problem) -> PreparedMessage {
        let topic = try PublishTopic(
            try fields.requiredString("topic"), maximumLevels: maximumTopicLevels, field: "topic")
        let seconds = try fields.integer("expires_in_s", in: Publisher.expirySeconds)
        let id = publisher.messageID(try fields.messageID())
        var publication = Publication(
            topic: topic.bytes, payload: try fields.payload(),
            qos: Publisher.qos(try fields.integer("qos", in: 0...2)),
            retain: try fields.bool("retain") ?? false,
            expiresAtMs: publisher.expiry(inSeconds: seconds))
        let collapseKey = try fields.collapseKey()
        publication.collapseKey = collapseKey.map { CollapseKey.name($0, topic: topic.bytes) }
        let delivery = try fields.delivery(now: publisher.now())
        if let delivery {
            guard collapseKey == nil else {
                throw fields.wrong(
                    "collapse_key", "is given, and so is a time of delivery",
                    fix: "Give one of them; a scheduled message replaces nothing.")
            }
            publication.expiresAtMs = nil
            publication.schedule = MessageSchedule(
                messageID: Array(id.text.utf8), deliverAtMs: delivery.atMs,
                expiresInMs: (seconds ?? 0) * 1_000)
        }
        publication.wake = try fields.wake()
        publication.properties = try fields.properties(of: publication.payload)
        publisher.follow(&publication, try fields.bool("receipts"), id)
        publication.identity = PublishIdentity(
            of: publication, expiresInSeconds: seconds, id: id, key: key, caller: caller,
            delivery: delivery?.meaning)
        return PreparedMessage(
            publication: publication, id: id, obstacle: delivery?.obstacle)
    }

    static let messageFields = JSONFields.Known(
        [
            "topic", "payload", "payload_base64", "qos", "retain", "message_id", "expires_in_s",
            "collapse_key", "idempotency_key", "receipts", "deliver_at", "deliver_in_s", "wake",
            "properties",
        ].map { JSONFields.Name(canonical: $0) })
}
