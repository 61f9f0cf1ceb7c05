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
        let endsWithStop: Bool
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

    /// Ends the loops that end with the client's stop; they get what came before.
    func end() {
        let followers = content.withLockedValue { content in
            let ending = content.followers.filter(\.value.endsWithStop)
            for number in ending.keys { content.followers[number] = nil }
            return ending.values
        }
        for follower in followers { follower.mailbox.close() }
    }

    func follow(
        _ filter: [UInt8], endsWithStop: Bool
    ) -> (mailbox: Mailbox<HermesClient.ReceivedMessage>, number: Int) {
        let mailbox = Mailbox<HermesClient.ReceivedMessage>(mostElements: Self.mostUnread)
        return content.withLockedValue { content in
            content.nextFollower += 1
            content.followers[content.nextFollower] = Follower(
                filter: filter, mailbox: mailbox, endsWithStop: endsWithStop)
            return (mailbox, content.nextFollower)
        }
    }

    func unfollow(_ number: Int) {
        _ = content.withLockedValue { $0.followers.removeValue(forKey: number) }
    }
}
