import Structures

/// The notices of one turn, for the operator's log.
package struct Notices {
    /// Bounded because each notice may hold an identifier of 64 KiB.
    private static let mostOfClients = 1_000

    private var notices: [BrokerNotice] = []
    /// True when someone wants to know of connections and their ends.
    package var reportsLifecycle = false
    /// True when the log shows what clients wait for.
    package var reportsWaiting = false

    package mutating func append(_ notice: BrokerNotice) { notices.append(notice) }

    /// Appends a notice that one client can cause very often. Beyond a bound per turn such notices
    /// are dropped; counters still count.
    package mutating func appendBounded(_ notice: BrokerNotice) {
        guard notices.count < Self.mostOfClients else { return }
        notices.append(notice)
    }

    package var isEmpty: Bool { notices.isEmpty }

    /// Takes the notices since the last call.
    package mutating func take() -> [BrokerNotice] { takeAll(&notices) }
}
