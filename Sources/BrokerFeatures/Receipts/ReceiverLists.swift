import BrokerCore
import Structures

/// A receiver of a message with a receipt.
struct Receiver: BitwiseCopyable {
    let receipt: UInt32
    /// Among the receivers of the receipt.
    let place: UInt32
    /// The number of its session, or that of a batch of messages that other members of their groups
    /// are to get.
    var session: UInt64
    /// The queue position while the receiver is open; then the ticket of its end, for its event.
    var position: UInt64
    var client: CompactBytes
    /// The filter of the shared subscription as whose member it gets the message, or the identifier of
    /// the message that replaced it; empty without either.
    var detail = CompactBytes()
    /// The next receiver of the receipt.
    var next: UInt32 = noIndex
    /// The list of ``ReceiverLists`` and the neighbours in it; ``noIndex`` without one.
    var list: UInt32 = noIndex
    var before: UInt32 = noIndex
    var after: UInt32 = noIndex
    var outcome = ReceiverOutcome.open
    var reason = ReceiverReason.none
    /// UNIX time in milliseconds of its end.
    var atMs: Int64 = 0
    /// The number of the event that tells of it; 0 for none.
    var event: UInt64 = 0

    /// The filter of the shared subscription as whose member it gets the message; `nil` without one.
    var group: String? { isReplaced ? nil : text }

    /// The identifier of the message that replaced its own; `nil` without one.
    var replacement: String? { isReplaced ? text : nil }

    private var isReplaced: Bool { reason == ReceiverReason(.replaced) }

    private var text: String? {
        detail.isEmpty ? nil : String(decoding: detail.array, as: UTF8.self)
    }
}

/// Lists of receivers: one of those whose events are not taken, and one for each session with open
/// ones.
struct ReceiverLists: ~Copyable {
    struct List: BitwiseCopyable {
        var first: UInt32 = noIndex
        var last: UInt32 = noIndex
        /// The number of the session.
        var session: UInt64 = 0
    }

    private let addressOnly: any Sendable = ()
    private var lists = Slab<List>()
    /// Lists of sessions that have ended.
    private var orphans = GrowableBuffer<UInt32>()
    let events: UInt32

    init() { events = lists.insert(List()) }

    mutating func make(_ session: UInt64) -> UInt32 { lists.insert(List(session: session)) }

    func session(of list: UInt32) -> UInt64 { lists[list].session }

    func first(of list: UInt32) -> UInt32 { lists[list].first }

    func isEmpty(_ list: UInt32) -> Bool { lists[list].first == noIndex }

    /// Frees an empty list.
    mutating func free(_ list: UInt32) { lists.remove(list) }

    mutating func append(_ place: UInt32, to list: UInt32, _ receivers: inout Slab<Receiver>) {
        receivers[place].list = list
        receivers[place].before = lists[list].last
        receivers[place].after = noIndex
        if lists[list].last == noIndex {
            lists[list].first = place
        } else {
            receivers[lists[list].last].after = place
        }
        lists[list].last = place
    }

    mutating func remove(_ place: UInt32, _ receivers: inout Slab<Receiver>) {
        let (list, before, after) = (
            receivers[place].list, receivers[place].before, receivers[place].after
        )
        if before == noIndex { lists[list].first = after } else { receivers[before].after = after }
        if after == noIndex { lists[list].last = before } else { receivers[after].before = before }
        receivers[place].list = noIndex
    }

    // MARK: Ended sessions

    var hasOrphans: Bool { orphans.count > 0 }

    mutating func orphan(_ list: UInt32) { orphans.append(list) }

    /// The first receiver of the lists of ended sessions; the caller removes it.
    mutating func nextOrphan() -> UInt32? {
        while orphans.count > 0 {
            let list = orphans[orphans.count - 1]
            if !isEmpty(list) { return lists[list].first }
            free(list)
            _ = orphans.popLast()
        }
        return nil
    }
}
