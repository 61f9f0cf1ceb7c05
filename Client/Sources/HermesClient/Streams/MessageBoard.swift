import HermesClientCore
import NIOConcurrencyHelpers

/// The tasks that look at the messages of a topic filter: each gets a copy of every one that comes
/// from its beginning on.
final class MessageBoard: Sendable {
    /// Messages that one task has not taken; with more the oldest are skipped.
    static let mostUnread = 256

    private struct Follower {
        let filter: [UInt8]
        let mailbox: Mailbox<HermesClient.ReceivedMessage>
    }

    private struct Content {
        var followers: [Int: Follower] = [:]
        var nextFollower = 0
    }

    private let content = NIOLockedValueBox(Content())

    func put(_ message: HermesClient.ReceivedMessage) {
        let followers = content.withLockedValue { $0.followers }
        guard !followers.isEmpty else { return }
        let topic = Array(message.topic.utf8)
        for follower in followers.values where TopicMatch.covers(follower.filter, topic) {
            follower.mailbox.put(message)
        }
    }

    /// Ends all loops, which get what came before.
    func end() {
        let followers = content.withLockedValue { content in
            defer { content.followers = [:] }
            return content.followers.values
        }
        for follower in followers { follower.mailbox.close() }
    }

    func follow(
        _ filter: [UInt8]
    ) -> (mailbox: Mailbox<HermesClient.ReceivedMessage>, number: Int) {
        let mailbox = Mailbox<HermesClient.ReceivedMessage>(mostElements: Self.mostUnread)
        return content.withLockedValue { content in
            content.nextFollower += 1
            content.followers[content.nextFollower] = Follower(filter: filter, mailbox: mailbox)
            return (mailbox, content.nextFollower)
        }
    }

    func unfollow(_ number: Int) {
        _ = content.withLockedValue { $0.followers.removeValue(forKey: number) }
    }
}
