import BrokerAPI
import FoundationEssentials
import Hummingbird
import PlainText

/// Retained messages.
struct RetainedRoutes: Sendable {
    let broker: any BrokerControl

    /// `GET` and `DELETE /v1/retained`, `GET /v1/retained/message`.
    var routes: [Route] { [list, show, remove] }

    private var list: Route {
        Route(
            method: .get, path: "/v1/retained", access: .reading(.filtered),
            query: ["filter", "limit", "cursor"]
        ) { request throws(Problem) in
            let query = RetainedQuery(
                filter: try Self.filter(request.query["filter"] ?? "#"),
                limit: try request.query.pageSize(), cursor: try request.query.listCursor())
            var page: RetainedPage = try await broker.ask { .retainedList(query, $0) }
            page.retained.removeAll { !request.maySee($0.topic) }
            return try Response.json(page)
        }
    }

    private var show: Route {
        Route(
            method: .get, path: "/v1/retained/message", access: .reading(.filtered),
            query: ["topic"]
        ) { request throws(Problem) in
            let topic = try request.query.required("topic", example: "orders/1")
            let message: RetainedMessage? = try await broker.ask { .retained(topic: topic, $0) }
            guard let message, request.maySee(topic) else {
                throw Problem.notRetained(topic)
            }
            let text = String(validating: message.payload, as: UTF8.self)
            return try Response.json(
                RetainedModel(
                    message.summary, payload: text,
                    payloadBase64: text == nil
                        ? Data(message.payload).base64EncodedString() : nil))
        }
    }

    private var remove: Route {
        Route(
            method: .delete, path: "/v1/retained", access: .admin, query: ["topic"]
        ) { request throws(Problem) in
            let topic = try request.query.required("topic", example: "orders/1")
            guard !topic.utf8.starts(with: "$SYS/".utf8) else {
                throw Problem(
                    .invalidTopic, "\(topic.visible()) is one of the broker's own topics.",
                    field: "topic", fix: "They go with sys_interval: 0.")
            }
            let wasThere: Bool = try await broker.ask { .removeRetained(topic: topic, $0) }
            guard wasThere else { throw Problem.notRetained(topic) }
            return Response(status: .noContent)
        }
    }

    /// - Throws: ``Problem`` for text that is no topic filter (section 4.7).
    private static func filter(_ text: String) throws(Problem) -> String {
        guard TopicFilterText.isFilter(text) else {
            throw Problem(
                .invalidQuery, "\"\(text.visible())\" is no topic filter [MQTT-4.7.1-2].",
                field: "filter", fix: "Write such as orders/# or orders/+/status.")
        }
        return text
    }
}

extension Problem {
    fileprivate static func notRetained(_ topic: String) -> Problem {
        Problem(
            .notRetained, "The topic \"\(topic.visible())\" has no retained message.",
            field: "topic", fix: "GET /v1/retained lists those there are.")
    }
}
