import Authorization
import BrokerAPI
import Explanations
import Hummingbird
import PlainText

/// `GET /v1/clients/{id}/explain`: the state of a client in plain words.
struct ExplainRoute: Sendable {
    let broker: any BrokerControl
    let senders: @Sendable () -> WakeSenders
    /// UNIX time in milliseconds.
    let now: @Sendable () -> Int64

    /// Queued messages that are looked through for the one that is asked about.
    static let mostQueued = 10_000
    /// Subscriptions that are added to those of the client's detail, because they match.
    private static let mostMatching = 100

    var route: Route {
        Route(
            method: .get, path: "/v1/clients/{id}/explain", access: .reading(.refused),
            query: ["topic", "message"]
        ) { request throws(Problem) in
            try Response.json(try await explanation(request))
        }
    }

    private func explanation(_ request: RouteRequest) async throws(Problem) -> ClientExplanation {
        let clientID = request.parameter("id")
        _ = try ClientIDText(clientID, field: "id")
        let topic = try text("topic", of: request)
        if let topic, topic.utf8.contains(where: { "+#".utf8.contains($0) }) {
            throw Problem(
                .invalidTopic,
                "\(topic.visible()) holds a wildcard, which no message's topic has [MQTT-3.3.2-2].",
                field: "topic", fix: "Give the topic of a message, such as orders/1.")
        }
        let messageID = try text("message", of: request)
        if topic != nil, messageID != nil {
            throw Problem(
                .invalidQuery, "The query has both a topic and a message.", field: "topic",
                fix: "Give one of them: a message has its own topic.")
        }
        var about: MessageExplanation?
        var detail: ClientDetail? = try await broker.ask { .client(clientID, $0) }
        if let topic { try await addSubscriptions(matching: topic, to: &detail) }
        if let messageID {
            about = try await message(request.owned(messageID), for: clientID, &detail)
        }
        let history: ClientHistory = try await broker.ask { .history(clientID: clientID, $0) }
        var readRight: ReadRight?
        let asked = topic ?? about?.topic
        if let asked {
            readRight = try await broker.ask(AskReadRight(clientID: clientID, topic: asked))
        }
        var receivers: TopicReceivers?
        if let topic, detail != nil {
            receivers = try await broker.ask {
                .topicReceivers(topic: topic, qos: .atLeastOnce, limit: 3, $0)
            }
        }
        let explanation = Explanation(
            clientID: clientID, detail: detail, history: history, topic: asked,
            readRight: readRight, receivers: receivers,
            wakeObstacle: { device in
                Device.Kind.allCases.first { $0.name == device.kind }
                    .flatMap {
                        senders().obstacle(
                            for: $0, bundle: device.bundle, environment: device.environment)
                    }
            }, now: now())
        return ClientExplanation(
            clientID: clientID, known: !explanation.isUnknown,
            sentences: (about?.sentences ?? []) + explanation.sentences, events: history.events)
    }

    private func text(_ name: ForeignText, of request: RouteRequest) throws(Problem) -> String? {
        guard let text = request.query[name] else { return nil }
        guard !text.isEmpty else {
            throw Problem(
                .invalidQuery, "The query parameter \(name) is empty.", field: name.string,
                fix: "Give it a value, or leave it out.")
        }
        return text
    }

    /// Adds the subscriptions that match a topic, of a client with more than its detail lists.
    private func addSubscriptions(
        matching topic: String, to detail: inout ClientDetail?
    ) async throws(Problem) {
        guard let known = detail, known.summary.subscriptions > known.subscriptionList.count else {
            return
        }
        var listed = Set(known.subscriptionList.map { ForeignText($0.filter) })
        var left = Self.mostMatching
        var query = SubscriptionQuery(
            clientID: known.summary.clientID, prefix: "", from: 0, limit: PageSize.largest)
        while left > 0 {
            let asked = query
            let page: SubscriptionPage = try await broker.ask { .subscriptions(asked, $0) }
            for subscription in page.subscriptions
            where FilterMatch.matches(filter: subscription.filter, topic: topic)
                && listed.insert(ForeignText(subscription.filter)).inserted
            {
                detail?.subscriptionList.append(
                    ClientSubscription(filter: subscription.filter, qos: subscription.qos))
                left -= 1
            }
            guard let next = page.next.flatMap({ UInt64($0) }), next > query.from else { return }
            query.from = next
        }
    }

    /// What became of a message for the client.
    private func message(
        _ name: OwnedName, for clientID: String, _ detail: inout ClientDetail?
    ) async throws(Problem) -> MessageExplanation {
        let messageID = String(decoding: name.name, as: UTF8.self)
        let receipt = try await broker.ask(ShowReceipt(name: name))
        let isListed = receipt?.receivers?.contains { $0.clientID.hasBytes(of: clientID) } ?? false
        let (queued, isLonger) =
            isListed ? (nil, false) : try await find(messageID, in: clientID)
        if let topic = receipt?.topic ?? queued?.topic {
            try await addSubscriptions(matching: topic, to: &detail)
        }
        return MessageExplanation(
            messageID: messageID, clientID: clientID, detail: detail, receipt: receipt,
            queued: queued,
            isQueueLonger: isLonger, now: now())
    }

    /// Looks for a message in the queue of a client.
    ///
    /// - Returns: The message, if it was found, and whether the queue is longer than what was
    ///   looked through.
    private func find(
        _ messageID: String, in clientID: String
    ) async throws(Problem) -> (QueuedMessage?, Bool) {
        var query = QueueQuery(clientID: clientID, limit: PageSize.largest)
        var seen = 0
        while seen < Self.mostQueued {
            let asked = query
            let page: QueuePage? = try await broker.ask { .queue(asked, $0) }
            guard let page else { return (nil, false) }
            let found = page.messages.first { $0.messageID?.hasBytes(of: messageID) == true }
            if let found { return (found, false) }
            guard let next = page.next.flatMap({ UInt64($0) }), next > query.from else {
                return (nil, false)
            }
            query.from = next
            // A page of none counts too, so that this ends.
            seen += max(1, page.messages.count)
        }
        return (nil, true)
    }
}
