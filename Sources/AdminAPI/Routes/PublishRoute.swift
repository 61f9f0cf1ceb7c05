import AdminModel
import Hummingbird

extension Route {
    /// `POST /v1/publish`: the body is the payload, whatever it is.
    static func publish(_ publisher: Publisher, maximumTopicLevels: Int) -> Route {
        Route(
            method: .post, path: "/v1/publish", access: .scope(.publish), body: .raw,
            query: ["topic", "qos", "retain"]
        ) { request throws(Problem) in
            let name = try request.query.required("topic", example: "orders/4711")
            var message = Publisher.Message(
                topic: try PublishTopic(
                    name, maximumLevels: maximumTopicLevels, field: "topic"),
                payload: request.body)
            if let qos = try request.query.integer("qos", in: 0...2) { message.qos = UInt8(qos) }
            if let retain = try request.query.bool("retain") { message.retain = retain }
            return Response.json(try await publisher.publish(message, for: request.caller))
        }
    }
}
