import NIOConcurrencyHelpers

/// The client's state now, and the tasks that follow it: each sees the state at its beginning and
/// every change from then on.
final class StateBoard: Sendable {
    /// Changes that one task has not taken; with more the oldest are skipped.
    static let mostUnread = 256

    private struct Content {
        var current: HermesClient.State
        var followers: [Int: Mailbox<HermesClient.State>] = [:]
        var nextFollower = 0
    }

    private let content: NIOLockedValueBox<Content>

    init(_ state: HermesClient.State) { content = NIOLockedValueBox(Content(current: state)) }

    var current: HermesClient.State { content.withLockedValue { $0.current } }

    func change(to state: HermesClient.State) {
        content.withLockedValue { content in
            guard content.current != state else { return }
            content.current = state
            for follower in content.followers.values { follower.put(state) }
        }
    }

    /// Ends all loops, which get the last state before.
    func end() {
        let followers = content.withLockedValue { content in
            defer { content.followers = [:] }
            return content.followers.values
        }
        for follower in followers { follower.close() }
    }

    func follow() -> (mailbox: Mailbox<HermesClient.State>, number: Int) {
        let mailbox = Mailbox<HermesClient.State>(mostElements: Self.mostUnread)
        return content.withLockedValue { content in
            mailbox.put(content.current)
            content.nextFollower += 1
            content.followers[content.nextFollower] = mailbox
            return (mailbox, content.nextFollower)
        }
    }

    func unfollow(_ number: Int) {
        content.withLockedValue { _ = $0.followers.removeValue(forKey: number) }
    }
}
