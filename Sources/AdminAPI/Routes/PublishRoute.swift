import BrokerAPI
import Hummingbird

extension Route {
    /// `POST /v1/publish`: the body is the payload.
    static func publish(_ publisher: Publisher, maximumTopicLevels: Int) -> Route {
        Route(
            method: .post, path: "/v1/publish", access: .scope(.publish), body: .raw,
            query: ["topic", "qos", "retain", "message_id", "expires_in_s"]
        ) { request throws(Problem) in
            let name = try request.query.required("topic", example: "orders/4711")
            let topic = try PublishTopic(name, maximumLevels: maximumTopicLevels, field: "topic")
            let publication = Publication(
                topic: topic.bytes, payload: request.body,
                qos: Publisher.qos(try request.query.integer("qos", in: 0...2)),
                retain: try request.query.bool("retain") ?? false,
                expiresAtMs: publisher.expiry(
                    inSeconds: try request.query.integer(
                        "expires_in_s", in: Publisher.expirySeconds)))
            return Response.json(
                try await publisher.publish(
                    publication, messageID: try request.query.messageID(), for: request.caller))
        }
    }
}
