import BrokerAPI
import Hummingbird
import PlainText

/// Messages that are published later.
struct ScheduledRoutes: Sendable {
    let broker: any BrokerControl
    /// UNIX time in milliseconds.
    let now: @Sendable () -> Int64

    /// `GET /v1/scheduled`; `GET`, `PATCH` and `DELETE /v1/scheduled/{id}`.
    var routes: [Route] { [list, show, move, cancel] }

    private static let moveFields = JSONFields.Known(
        ["deliver_at", "deliver_in_s"].map { JSONFields.Name(canonical: $0) })

    private var list: Route {
        Route(
            method: .get, path: "/v1/scheduled", access: .reading(.filtered),
            query: ["limit", "cursor"]
        ) { request throws(Problem) in
            let limit = try request.query.pageSize()
            let place = try request.query.placeCursor(UInt32.self)
            var page = try await broker.ask(ListScheduled(from: place, limit: limit))
            page.messages.removeAll { !request.maySee($0.topic) }
            page.next = page.next.flatMap { UInt32($0) }.map { PlaceCursor($0).text }
            return try Response.json(page)
        }
    }

    private var show: Route {
        Route(method: .get, path: "/v1/scheduled/{id}", access: .reading(.filtered)) {
            request throws(Problem) in
            try Response.json(try await message(of: request))
        }
    }

    private var move: Route {
        Route(
            method: .patch, path: "/v1/scheduled/{id}",
            access: .scope(.publish, topics: .filtered, rate: .untouched), body: .json
        ) { request throws(Problem) in
            let fields = try JSONFields(try request.json(), known: Self.moveFields)
            guard let delivery = try fields.delivery(now: now()) else {
                throw Problem(
                    .invalidField, "Both deliver_at and deliver_in_s are missing.",
                    field: "deliver_at", fix: "Give one of them.")
            }
            if let obstacle = delivery.obstacle { throw obstacle }
            var message = try await message(of: request)
            try await change(request, .move(toMs: delivery.atMs))
            message.deliverAtMs = delivery.atMs
            return try Response.json(message)
        }
    }

    private var cancel: Route {
        Route(
            method: .delete, path: "/v1/scheduled/{id}",
            access: .scope(.publish, topics: .filtered, rate: .untouched)
        ) {
            request throws(Problem) in
            let message = try await message(of: request)
            try await change(request, .cancel)
            return try Response.json(message)
        }
    }

    private func change(
        _ request: RouteRequest, _ change: ScheduledChange
    ) async throws(Problem) {
        let messageID = request.parameter("id")
        let name = request.owned(messageID)
        let isFound = try await broker.ask(ChangeScheduled(name: name, change: change))
        if !isFound { throw Problem.notScheduled(messageID) }
    }

    private func message(of request: RouteRequest) async throws(Problem) -> ScheduledMessage {
        let messageID = request.parameter("id")
        let name = request.owned(messageID)
        let message = try await broker.ask(ShowScheduled(name: name))
        guard let message, request.maySee(message.topic) else {
            throw Problem.notScheduled(messageID)
        }
        return message
    }
}

extension Problem {
    fileprivate static func notScheduled(_ messageID: String) -> Problem {
        Problem(
            .notScheduled, "No message \"\(messageID.visible())\" is scheduled.", field: "id",
            fix: "It may have been published or cancelled; GET /v1/scheduled lists those there are."
        )
    }

    static let alreadyScheduled = Problem(
        .alreadyScheduled, "A scheduled message of this token has this message_id.",
        field: "message_id",
        fix: "Use another one, or DELETE /v1/scheduled/{id} first.")

    static let tooManyScheduled = Problem(
        .tooManyScheduled,
        "There are as many scheduled messages as there may be, or as this token may have.",
        field: "deliver_at",
        fix: "Try again when some are published, or raise limits.scheduled or "
            + "limits.scheduled_bytes.")
}
