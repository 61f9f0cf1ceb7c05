import BrokerAPI

extension AdminClient {
    /// Subscriptions, at most so many: of one client or all, whose filters begin with `prefix`.
    func subscriptions(
        of clientID: String?, prefix: String?, limit: Int
    ) async throws(CommandFailure) -> SubscriptionPage {
        var filter: [(name: String, value: String)] = []
        if let clientID { filter.append(("client_id", clientID)) }
        if let prefix { filter.append(("prefix", prefix)) }
        let (found, next) = try await gather(
            ["v1", "subscriptions"], query: filter, limit: limit
        ) { (page: SubscriptionPage) in (page.subscriptions, page.next) }
        return SubscriptionPage(subscriptions: found, next: next)
    }

    /// The clients that a message on a topic would reach now.
    func receivers(
        of topic: String, qos: Int, limit: Int
    ) async throws(CommandFailure) -> Answer<TopicReceivers> {
        try await get(
            ["v1", "receivers"],
            query: [("topic", topic), ("qos", "\(qos)"), ("limit", "\(limit)")])
    }

    /// Retained messages whose topics match a filter, at most so many.
    func retained(filter: String, limit: Int) async throws(CommandFailure) -> RetainedPage {
        let (found, next) = try await gather(
            ["v1", "retained"], query: [("filter", filter)], limit: limit
        ) { (page: RetainedPage) in (page.retained, page.next) }
        return RetainedPage(retained: found, next: next)
    }

    func retainedMessage(
        of topic: String
    ) async throws(CommandFailure) -> Answer<RetainedModel> {
        try await get(["v1", "retained", "message"], query: [("topic", topic)])
    }

    func deleteRetained(_ topic: String) async throws(CommandFailure) {
        try await remove(["v1", "retained"], query: [("topic", topic)])
    }
}
