import MQTTCore
import Structures

/// Lost messages for the log: of each client and reason a line at the first loss, and further ones
/// after 1, 2, 4 and so on to 64 seconds while it loses more, each with the number of messages that
/// were lost since the line before.
///
/// A client that loses nothing for two pauses is told of at once again.
package struct DropReports {
    private struct Key: Hashable {
        let session: UInt32
        /// An index is used again for other sessions.
        let generation: UInt32
        let reason: DropReason
    }

    private struct Entry {
        let client: [UInt8]
        var pause: Pause
        /// Lost since the last line.
        var count: UInt64 = 0
        /// True when it lost nothing in its last pause.
        var isSilent = false
        /// One of these, if memory had it.
        var message: ReportedMessage?
    }

    /// The time until the next line, twice as long after each.
    private struct Pause {
        private static let shortest: UInt64 = 1_000
        private static let longest: UInt64 = 64_000

        private var milliseconds = shortest
        private(set) var end: MonotonicTime

        init(from now: MonotonicTime) {
            end = now.advanced(byMilliseconds: Self.shortest)
        }

        mutating func double(at now: MonotonicTime) {
            milliseconds = min(2 * milliseconds, Self.longest)
            self.repeat(at: now)
        }

        mutating func `repeat`(at now: MonotonicTime) {
            end = now.advanced(byMilliseconds: milliseconds)
        }
    }

    /// Clients and reasons that are told apart. An identifier may have 64 KiB.
    private static let most = 256

    private var entries: [Key: Entry] = [:]
    /// Messages of clients beyond ``most`` since the last line about them, ...
    private var others: UInt64 = 0
    /// ... and the time of the next one; `nil` while none has lost any.
    private var othersPause: Pause?
    /// The time of the next line; `nil` while nothing is lost.
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
        let pause = Pause(from: now)
        deadline = MonotonicTime.earliest(deadline, pause.end)
        guard entries.count < Self.most else {
            others += 1
            if othersPause == nil { othersPause = pause }
            return nil
        }
        let client = sessions.identifier(of: session)
        entries[key] = Entry(client: client, pause: pause)
        return .dropping(
            clientID: client, reason, message.map { ReportedMessage($0) }, count: 1)
    }

    /// Ends the pauses that are over; returns what has been lost in them and is not told.
    package mutating func takeDue(at now: MonotonicTime) -> [BrokerNotice] {
        guard let deadline, deadline <= now else { return [] }
        self.deadline = nil
        var notices: [BrokerNotice] = []
        for (key, entry) in entries where entry.pause.end <= now {
            guard entry.count > 0 else {
                var silent = entry
                silent.isSilent = true
                silent.pause.repeat(at: now)
                entries[key] = entry.isSilent ? nil : silent
                continue
            }
            notices.append(
                .dropping(
                    clientID: entry.client, key.reason, entry.message, count: entry.count))
            var told = Entry(client: entry.client, pause: entry.pause)
            told.pause.double(at: now)
            entries[key] = told
        }
        if let pause = othersPause, pause.end <= now {
            if others > 0 { notices.append(.droppingOfOthers(count: others)) }
            othersPause?.double(at: now)
            if others == 0 { othersPause = nil }
            others = 0
        }
        for entry in entries.values {
            self.deadline = MonotonicTime.earliest(self.deadline, entry.pause.end)
        }
        self.deadline = MonotonicTime.earliest(self.deadline, othersPause?.end)
        return notices
    }
}
