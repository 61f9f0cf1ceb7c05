import BrokerAPI
import BrokerCore
import Structures

/// Groups of messages from the admin plane. They are published in the order in which they came, in
/// slices between clients' packets; each slice is one commit, and a group is answered when all of
/// its slices are stored.
struct PublishGroups {
    struct Group {
        let publications: [Publication]
        let since: MonotonicTime
        let reply: Reply<[PublishOutcome]>
        /// The outcomes of the messages published so far, in order.
        var outcomes: [PublishOutcome] = []
        /// Slices whose commits have not completed, and slices with repeats that wait for others'.
        var uncommitted = 0

        /// The next message; `nil` when all are published.
        var next: Publication? {
            outcomes.count < publications.count ? publications[outcomes.count] : nil
        }
    }

    /// Time for which groups wait while the backlog for the disk is full; then their messages are
    /// refused.
    private static let patienceMilliseconds: UInt64 = 5_000

    /// The number of the last group. Those from ``firstWaiting`` on still have messages to publish.
    private var last: UInt64 = 0
    private var firstWaiting: UInt64 = 1
    /// By number: groups that are not answered.
    private var groups: [UInt64: Group] = [:]

    /// True when messages wait to be published.
    var isWaiting: Bool { firstWaiting <= last }

    mutating func add(
        _ publications: [Publication], at now: MonotonicTime,
        _ reply: @escaping Reply<[PublishOutcome]>
    ) {
        last += 1
        groups[last] = Group(publications: publications, since: now, reply: reply)
    }

    /// The time from which on the first group is published; `nil` without one. A group is
    /// `heldBack` while the disk is behind.
    func due(at now: MonotonicTime, heldBack: Bool) -> MonotonicTime? {
        guard isWaiting else { return nil }
        guard heldBack, let first = groups[firstWaiting] else { return now }
        return max(now, first.since.advanced(byMilliseconds: Self.patienceMilliseconds))
    }

    /// Takes the first group out, for a slice; ``putBack(_:)`` must follow.
    mutating func takeFirst() -> (number: UInt64, group: Group)? {
        groups.removeValue(forKey: firstWaiting).map { (firstWaiting, $0) }
    }

    /// Takes a group back after a slice; answers it when it is done and stored.
    mutating func putBack(_ group: Group) {
        let number = firstWaiting
        if group.next == nil { firstWaiting += 1 }
        keep(group, number)
    }

    /// The commit of one of the group's slices has completed.
    mutating func committed(_ number: UInt64) {
        guard var group = groups.removeValue(forKey: number) else { return }
        group.uncommitted -= 1
        keep(group, number)
    }

    private mutating func keep(_ group: Group, _ number: UInt64) {
        if group.next == nil, group.uncommitted == 0 {
            group.reply(.success(group.outcomes))
        } else {
            groups[number] = group
        }
    }

    /// Answers every group with an error, because the shard stops.
    mutating func abandonAll() {
        for group in groups.values { group.reply(.failure(.stopping)) }
        groups.removeAll()
        firstWaiting = last + 1
    }
}
