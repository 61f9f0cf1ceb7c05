import BrokerAPI
import Hummingbird
import PlainText

/// Messages that are sent to many clients without subscriptions.
struct PushRoutes: Sendable {
    let publisher: Publisher
    let maximumTopicLevels: Int

    /// `POST` and `GET /v1/pushes`; `POST /v1/pushes/batch`; `GET` and `DELETE /v1/pushes/{id}`.
    var routes: [Route] {
        [
            create, list, show, cancel,
            .batch("/v1/pushes/batch", publisher, PushBatch(routes: self)),
        ]
    }

    private var create: Route {
        Route(
            method: .post, path: "/v1/pushes",
            access: .scope(.publish, topics: .checked, rate: .messages), body: .json
        ) { request throws(Problem) in
            let fields = try JSONFields(try request.json(), known: PushOrder.fields)
            let order = try PushOrder(
                fields, publisher, maximumTopicLevels: maximumTopicLevels,
                key: try fields.idempotencyKey(header: request.idempotencyKey),
                caller: request.caller)
            try publisher.check(order.request.publication, of: request.caller)
            guard !order.isDryRun else {
                if let obstacle = order.obstacle ?? publisher.bounds.charge(request.caller) {
                    throw obstacle
                }
                let preview = try await publisher.broker.ask(
                    PreviewPush(target: order.request.target))
                return try Response.json(preview)
            }
            var response = try Response.json(try await store(order, for: request.caller))
            response.status = .accepted
            return response
        }
    }

    private var list: Route {
        Route(
            method: .get, path: "/v1/pushes", access: .reading(.filtered),
            query: ["limit", "cursor"]
        ) { request throws(Problem) in
            let limit = try request.query.pageSize()
            let below = try request.query.integer("cursor", in: 0...Int64.max).map { UInt64($0) }
            var page = try await publisher.broker.ask(ListPushes(below: below, limit: limit))
            page.pushes.removeAll { !request.maySee($0.topic) }
            return try Response.json(page)
        }
    }

    private var show: Route {
        Route(method: .get, path: "/v1/pushes/{id}", access: .reading(.filtered)) {
            request throws(Problem) in
            try Response.json(try await status(of: request))
        }
    }

    private var cancel: Route {
        Route(
            method: .delete, path: "/v1/pushes/{id}",
            access: .scope(.publish, topics: .filtered, rate: .untouched)
        ) {
            request throws(Problem) in
            let pushID = try await status(of: request).pushID
            let name = request.owned(pushID)
            let status = try await publisher.broker.ask(CancelPush(name: name))
            guard let status else { throw Problem.unknownPush(pushID) }
            return try Response.json(status)
        }
    }

    func store(
        _ order: PushOrder, for caller: Caller?
    ) async throws(Problem) -> PushAccepted {
        let outcome = try await publisher.carryOut(
            order.request.publication, order.obstacle, for: caller
        ) { publication async throws(Problem) in
            var request = order.request
            request.publication = publication
            let outcome = try await store(request)
            guard outcome == .receiptsAreOff, !order.insistsOnReceipts else { return outcome }
            request.publication.receiptID = []
            return try await store(request)
        }
        if outcome == .alreadyScheduled { throw Problem.pushExists }
        if outcome == .tooManyScheduled { throw Problem.tooManyPushes }
        let result = try publisher.result(order.id, outcome)
        return PushAccepted(
            pushID: result.messageID, durability: result.durability, duplicate: result.duplicate,
            scheduled: result.scheduled)
    }

    private func store(_ request: PushRequest) async throws(Problem) -> PublishOutcome {
        try await publisher.broker.ask(StartPush(request: request))
    }

    private func status(of request: RouteRequest) async throws(Problem) -> PushStatus {
        let pushID = request.parameter("id")
        let name = request.owned(pushID)
        let status = try await publisher.broker.ask(ShowPush(name: name))
        guard let status, request.maySee(status.topic) else {
            throw Problem.unknownPush(pushID)
        }
        return status
    }
}

extension Problem {
    fileprivate static func unknownPush(_ pushID: String) -> Problem {
        Problem(
            .pushNotFound, "There is no push \"\(pushID.visible())\".", field: "id",
            fix: "GET /v1/pushes lists those there are; they are kept for 24 hours after their "
                + "end, or shorter when there are more than limits.pushes.")
    }

    fileprivate static let pushExists = Problem(
        .pushExists, "A push has this message_id already.", field: "message.message_id",
        fix: "Use another one, or leave it out to have one made.")

    fileprivate static let tooManyPushes = Problem(
        .tooManyPushes,
        "There are as many pushes as there may be that have not ended, or their bytes and those of "
            + "scheduled messages are as many as they may be, in all or of this token.",
        fix: "Try again when some have ended, or raise limits.pushes or limits.scheduled_bytes; "
            + "with limits.pushes 0 this broker takes none.")
}
