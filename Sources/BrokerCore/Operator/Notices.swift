import Structures

/// The notices of one turn, for the operator's log.
struct Notices {
    /// Each may hold an identifier of 64 KiB.
    private static let mostOfClients = 1_000

    private var notices: [BrokerNotice] = []
    /// Whether somebody reads about the lifecycle of connections.
    var reportsLifecycle = false

    mutating func append(_ notice: BrokerNotice) { notices.append(notice) }

    /// A notice of which one client may cause very many in a turn: beyond a bound they are left out, and the
    /// counters miss none.
    mutating func appendBounded(_ notice: BrokerNotice) {
        guard notices.count < Self.mostOfClients else { return }
        notices.append(notice)
    }

    /// Hands out the notices since the last call.
    mutating func take() -> [BrokerNotice] { takeAll(&notices) }
}
