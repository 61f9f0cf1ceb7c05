import BrokerAPI
import BrokerCore
import Store
import Structures

/// The numbers of events about receivers, and the request that waits for the next ones.
struct ReceiptEvents {
    private struct Waiter {
        let after: UInt64
        let most: Int
        let until: MonotonicTime
        let reply: Reply<[ReceiptEvent]>
    }

    /// Time after which a request is answered with nothing.
    private static let patienceMilliseconds: UInt64 = 10_000
    /// Events of one answer.
    static let mostInAnswer = 1_024

    /// The highest number given.
    private(set) var last: UInt64 = 0
    /// Events up to this number are taken.
    var taken: UInt64 = 0
    /// Events that are not taken.
    var count = 0
    /// Events that were dropped before they were taken.
    var dropped: UInt64 = 0
    private var waiter: Waiter?
    private var restored: [(number: UInt64, place: UInt32)] = []

    mutating func newNumber() -> UInt64 {
        last += 1
        return last
    }

    // MARK: The request

    /// The time at which the waiting request is answered with nothing; `nil` without one.
    var deadline: MonotonicTime? { waiter?.until }
    var isAwaited: Bool { waiter != nil }
    /// What the waiting request asks for.
    var request: (after: UInt64, most: Int) { (waiter?.after ?? 0, waiter?.most ?? 0) }

    mutating func await(
        after number: UInt64, most: Int, at now: MonotonicTime,
        _ reply: @escaping Reply<[ReceiptEvent]>
    ) {
        answer(.success([]))
        waiter = Waiter(
            after: number, most: min(most, Self.mostInAnswer),
            until: now.advanced(byMilliseconds: Self.patienceMilliseconds), reply: reply)
    }

    /// Answers the waiting request, if there is one.
    mutating func answer(_ answer: BrokerAnswer<[ReceiptEvent]>) { waiter.take()?.reply(answer) }

    // MARK: Restoring

    mutating func restore(_ progress: ReceiptProgress) {
        taken = progress.taken
        last = max(progress.lastEvent, progress.taken)
    }

    /// Keeps a number that the store holds from being given again.
    mutating func noteStored(_ number: UInt64) { last = max(last, number) }

    /// Notes the event of a restored receiver; 0 for none.
    mutating func restore(_ number: UInt64, of place: UInt32) {
        last = max(last, number)
        if number > taken { restored.append((number, place)) }
    }

    /// The receivers of restored events, in their order.
    mutating func takeRestored() -> [UInt32] {
        restored.sort { $0.number < $1.number }
        return takeAll(&restored).map(\.place)
    }
}
