import BrokerAPI
import Hummingbird

extension Route {
    /// `POST /v1/publish`: the body is the payload.
    static func publish(_ publisher: Publisher, maximumTopicLevels: Int) -> Route {
        Route(
            method: .post, path: "/v1/publish",
            access: .scope(.publish, topics: .checked, rate: .messages), body: .raw,
            query: [
                "topic", "qos", "retain", "message_id", "expires_in_s", "receipts", "collapse_key",
                "wake",
            ]
        ) { request throws(Problem) in
            let name = try request.query.required("topic", example: "orders/4711")
            let topic = try PublishTopic(name, maximumLevels: maximumTopicLevels, field: "topic")
            let seconds = try request.query.integer("expires_in_s", in: Publisher.expirySeconds)
            let id = publisher.messageID(try request.query.messageID())
            var publication = Publication(
                topic: topic.bytes, payload: request.body,
                qos: Publisher.qos(try request.query.integer("qos", in: 0...2)),
                retain: try request.query.bool("retain") ?? false,
                expiresAtMs: publisher.expiry(inSeconds: seconds))
            publication.collapseKey = try request.query.collapseKey()
                .map { CollapseKey.name($0, topic: topic.bytes) }
            publication.wake = try request.query.wake()
            publisher.follow(&publication, try request.query.bool("receipts"), id)
            publication.identity = PublishIdentity(
                of: publication, expiresInSeconds: seconds, id: id, key: request.idempotencyKey,
                caller: request.caller)
            return Response.json(
                try await publisher.publish(
                    PreparedMessage(publication: publication, id: id), for: request.caller))
        }
    }
}
