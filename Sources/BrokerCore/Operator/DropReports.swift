import MQTTCore
import Structures

/// Lost messages for the log: of each client and reason at most one line a second, with the number
/// of messages that were lost since the line before.
///
/// The first loss is told at once, further ones at the end of the second.
package struct DropReports {
    private struct Key: Hashable {
        let session: UInt32
        /// An index is used again for other sessions.
        let generation: UInt32
        let reason: DropReason
    }

    private struct Entry {
        let client: [UInt8]
        /// Lost since the last line.
        var count: UInt64 = 0
        /// One of these, if memory had it.
        var message: ReportedMessage?
    }

    private static let intervalMilliseconds: UInt64 = 1_000
    /// Clients and reasons of one second. An identifier may have 64 KiB.
    private static let most = 256

    private var entries: [Key: Entry] = [:]
    /// Messages of clients beyond ``most``.
    private var others: UInt64 = 0
    /// The end of this second; `nil` while nothing is lost.
    package private(set) var deadline: MonotonicTime?

    /// Counts a loss; returns what is told at once.
    package mutating func note(
        _ reason: DropReason, _ session: UInt32, _ sessions: borrowing Sessions,
        _ message: Message?, at now: MonotonicTime
    ) -> BrokerNotice? {
        let key = Key(
            session: session, generation: sessions[session].generation, reason: reason)
        if let place = entries.index(forKey: key) {
            entries.values[place].count += 1
            if entries.values[place].message == nil {
                entries.values[place].message = message.map { ReportedMessage($0) }
            }
            return nil
        }
        if deadline == nil { deadline = now.advanced(byMilliseconds: Self.intervalMilliseconds) }
        guard entries.count < Self.most else {
            others += 1
            return nil
        }
        let client = sessions.identifier(of: session)
        entries[key] = Entry(client: client)
        return .dropping(
            clientID: client, reason, message.map { ReportedMessage($0) }, count: 1)
    }

    /// Ends the second if it is over; returns what has been lost in it and is not told.
    package mutating func takeDue(at now: MonotonicTime) -> [BrokerNotice] {
        guard let deadline, deadline <= now else { return [] }
        var notices: [BrokerNotice] = []
        var told: [Key: Entry] = [:]
        for (key, entry) in entries where entry.count > 0 {
            notices.append(
                .dropping(
                    clientID: entry.client, key.reason, entry.message, count: entry.count))
            told[key] = Entry(client: entry.client)
        }
        if others > 0 { notices.append(.droppingOfOthers(count: others)) }
        (entries, others) = (told, 0)
        self.deadline =
            told.isEmpty ? nil : now.advanced(byMilliseconds: Self.intervalMilliseconds)
        return notices
    }
}
