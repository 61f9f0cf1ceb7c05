import BrokerAPI
import Hummingbird
import MQTTCodec
import PlainText

/// Subscriptions of all clients, and whom a topic reaches.
struct SubscriptionRoutes: Sendable {
    let broker: any BrokerControl
    let bounds: PublishBounds
    let maximumTopicLevels: Int

    /// `GET /v1/subscriptions`, `GET /v1/receivers`.
    var routes: [Route] { [list, receivers] }

    private var list: Route {
        Route(
            method: .get, path: "/v1/subscriptions", access: .reading(.refused),
            query: ["client_id", "prefix", "limit", "cursor"]
        ) { request throws(Problem) in
            let (clientID, prefix) = (request.query["client_id"], request.query["prefix"] ?? "")
            if let clientID { _ = try ClientIDText(clientID, field: "client_id") }
            let (subscriptions, next) = try await request.query.gather(
                { (place: UInt64, limit) throws(Problem) -> ([ListedSubscription], String?) in
                    let query = SubscriptionQuery(
                        clientID: clientID, prefix: prefix, from: place, limit: limit)
                    let page: SubscriptionPage = try await broker.ask { .subscriptions(query, $0) }
                    return (page.subscriptions, page.next)
                }, bytes: { $0.filter.utf8.count + $0.clientID.utf8.count })
            return try Response.json(SubscriptionPage(subscriptions: subscriptions, next: next))
        }
    }

    private var receivers: Route {
        Route(
            method: .get, path: "/v1/receivers", access: .reading(.checked),
            query: ["topic", "qos", "limit"]
        ) { request throws(Problem) in
            let topic = try PublishTopic(
                request.query.required("topic", example: "orders/1"),
                maximumLevels: maximumTopicLevels, field: "topic"
            ).text
            try bounds.allow(Array(topic.utf8), for: request.caller)
            let level = try request.query.integer("qos", in: 0...2) ?? 1
            let qos = QoS(rawValue: UInt8(level)) ?? .atLeastOnce
            let limit = try request.query.pageSize()
            let answer: TopicReceivers = try await broker.ask {
                .topicReceivers(topic: topic, qos: qos, limit: limit, $0)
            }
            return try Response.json(answer)
        }
    }
}
