import BrokerAPI

extension AdminClient {
    func push(_ body: PushBody, key: String?) async throws(CommandFailure) -> Answer<PushAccepted> {
        try await send(.post, ["v1", "pushes"], json: body, key: key)
    }

    /// The clients that a push would reach now; the body says that it is a dry run.
    func preview(_ body: PushBody) async throws(CommandFailure) -> Answer<PushPreview> {
        try await send(.post, ["v1", "pushes"], json: body)
    }

    func pushStatus(_ pushID: String) async throws(CommandFailure) -> Answer<PushStatus> {
        try await get(["v1", "pushes", pushID])
    }

    /// Cancels what has not left of a push.
    func cancelPush(_ pushID: String) async throws(CommandFailure) -> Answer<PushStatus> {
        try await delete(["v1", "pushes", pushID])
    }

    /// Pushes, the youngest first, at most so many.
    func pushes(limit: Int) async throws(CommandFailure) -> PushPage {
        let (pushes, next) = try await gather(["v1", "pushes"], limit: limit) { (page: PushPage) in
            (page.pushes, page.next)
        }
        return PushPage(pushes: pushes, next: next)
    }
}
