import BrokerAPI
import Hummingbird

extension Route {
    /// `GET /v1/events`: snapshots of the broker, one a second, as server-sent events until the
    /// client leaves, its token loses its validity, or the broker stops.
    static func events(_ feed: SnapshotFeed) -> Route {
        Route(
            method: .get, path: "/v1/events", access: .reading(.untouched), isStream: true
        ) { request throws(Problem) in
            guard let admitAgain = request.admitAgain else {
                preconditionFailure("/v1/events got nothing that checks its token again")
            }
            let viewer = try feed.join()
            var headers: HTTPFields = [.contentType: ServerSentEvent.contentType]
            if let name = HTTPFields.Element.Name("Hermes-Scopes"), let caller = request.caller {
                headers[name] = caller.scopes.description
            }
            return Response(
                status: .ok, headers: headers,
                body: ResponseBody { writer in
                    let end = try await send(viewer, to: &writer, admitAgain)
                    try await writer.write(ServerSentEvent.bytes("end", end.line))
                    try await writer.finish(nil)
                })
        }
    }

    /// Writes each event as it comes. Waits while the client takes nothing, so that of the events
    /// that it misses none is kept; ``WriteStallMachine`` ends a connection that takes nothing for
    /// long.
    ///
    /// - Returns: Why the stream ends.
    private static func send(
        _ viewer: SnapshotFeed.Viewer, to writer: inout any ResponseBodyWriter,
        _ admitAgain: @Sendable () throws(Problem) -> Void
    ) async throws -> Problem {
        var last: UInt64 = 0
        while let event = await viewer.next(after: &last) {
            do throws(Problem) {
                // The token may have been revoked or expired meanwhile.
                try admitAgain()
            } catch {
                return error
            }
            try await writer.write(event)
        }
        return Problem(BrokerUnavailable.stopping)
    }
}
