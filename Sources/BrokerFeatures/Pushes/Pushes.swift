import BrokerAPI
import BrokerCore
import MQTTCodec
import Store
import Structures

/// Pushes: messages that go to many clients, by their tags or by a list.
///
/// A push is scheduled until its time, then it is sent in slices of turns; a slice's deliveries and
/// the push's progress are in one group of records. Ended pushes are kept for 24 hours, without
/// their payload and their clients.
struct Pushes {
    enum State: UInt8 {
        case scheduled = 0
        case sending = 1
        case done = 2
        case cancelled = 3
        /// Its time was over before it had reached all of its clients.
        case expired = 4
    }

    struct Push {
        var stored: StoredPush
        /// No clients once it has ended.
        var target: PushTarget
        /// The next place of the walk over tagged clients; `nil` without one.
        var walk: UInt32?
        /// Clients that the walk has found.
        var found: UInt32 = 0
        var order = ReceiverHeap()
        /// The UNIX time in milliseconds, and the clients reached, from which on the rest is spread.
        var pace: (fromMs: Int64, reached: UInt32)?
        /// UNIX time in milliseconds of the last slice.
        var slicedMs: Int64 = 0
        /// Bytes that it takes.
        private(set) var bytes: Int

        /// - Parameters:
        ///   - stored: The push. Its encoded target is dropped: memory has the target once.
        ///   - target: The target.
        init(stored: StoredPush, target: PushTarget) {
            self.stored = stored
            self.target = target
            bytes = 0
            bytes = ownBytes + stored.target.count
            if case .clients(let clients) = target { bytes += Pushes.listedBytes * clients.count }
            self.stored.target = []
        }

        private var ownBytes: Int {
            Pushes.recordBytes + stored.topic.count + stored.payload.count + stored.pushID.count
        }

        fileprivate mutating func end(_ state: State, at now: Int64) {
            stored.progress.state = state.rawValue
            stored.progress.endedMs = now
            stored.advance(to: stored.progress)
            target = .clients([])
            order = ReceiverHeap()
            walk = nil
            bytes = ownBytes
        }

        var name: OwnedName { OwnedName(stored.pushID, of: stored.owner) }
        var state: State { State(rawValue: stored.progress.state) ?? .cancelled }
        var isEnded: Bool { stored.progress.endedMs != 0 }
        var hash: KeyedHash { KeyedHash(seed: stored.seed) }

        /// UNIX time in milliseconds at which the message expires; 0 for never.
        var expiresAtMs: Int64 {
            stored.expiresInMs > 0 ? stored.dueMs + stored.expiresInMs : 0
        }

        /// Clients that may be reached by a UNIX time in milliseconds, when it is spread.
        func allowed(at now: Int64) -> UInt32 {
            guard let pace, isPaced(at: now), let durationMs else { return .max }
            let rest = Double(stored.progress.matched - min(pace.reached, stored.progress.matched))
            let share = Double(max(0, now - pace.fromMs)) / Double(durationMs)
            return pace.reached + UInt32(rest * share) + 1
        }

        private func isPaced(at now: Int64) -> Bool {
            guard let pace, let durationMs else { return false }
            return now < pace.fromMs + durationMs
        }

        /// Milliseconds over which the rest is spread; `nil` when all of it goes at once.
        private var durationMs: Int64? {
            guard let pace else { return nil }
            let duration = stored.progress.beganMs + stored.spreadMs - pace.fromMs
            return duration > 0 ? duration : nil
        }

        /// UNIX time in milliseconds of the next slice, while it is sent.
        func nextMs(at now: Int64) -> Int64 {
            guard walk == nil, isPaced(at: now) else { return now }
            let pauseEnd = slicedMs + Pushes.pauseMs
            if slicedMs <= now, now < pauseEnd { return pauseEnd }
            return allowed(at: now) > stored.progress.reached ? now : now + Pushes.pauseMs
        }
    }

    /// A question whom a push would reach.
    struct Preview {
        let target: PushTarget
        let reply: Reply<PushPreview>
        /// The next client of the list, or the next place of the tagged clients.
        var place: UInt32 = 0
        var answer = PushPreview()
    }

    /// Milliseconds between the slices of a push that is spread.
    private static var pauseMs: Int64 { 100 }
    private static var lifetimeMs: Int64 { 24 * 3_600_000 }
    /// Bytes of a push besides its strings, and of a client in its list besides the identifier.
    private static var recordBytes: Int { 512 }
    private static var listedBytes: Int { 48 }
    /// Clients that the orders of all pushes together hold, and those of one at least and at most.
    private static var mostOrdered: Int { 1 << 20 }
    private static var orderedByOne: ClosedRange<Int> { 4_096...65_536 }

    /// By number.
    private var pushes: [UInt64: Push] = [:]
    /// Ascending.
    private var numbers: [UInt64] = []
    /// Numbers of ended pushes, in the order of their ends.
    private var ended: [UInt64] = []
    private var byName: [OwnedName: UInt64] = [:]
    /// The youngest push of an identifier, whoever gave it.
    private var byPushID: [[UInt8]: UInt64] = [:]
    private(set) var lastNumber: UInt64 = 0
    /// The bytes of all pushes that are kept.
    private(set) var bytes = 0
    /// Pushes by owner that have not ended, and the bytes of all that are kept.
    private(set) var counts = OwnerShares<OwnerID>()
    private(set) var byteCounts = OwnerShares<OwnerID>()
    /// Numbers of those that are sent, and the index of the one that is next.
    private var sending: [UInt64] = []
    private var nextIndex = 0
    /// UNIX time in milliseconds of the first scheduled push; one that was cancelled may count.
    private var firstDueMs = Int64.max
    /// UNIX time in milliseconds at which the next slice is due; `nil` without any.
    private(set) var nextMs: Int64?
    var previews: [Preview] = []
    /// Clients whose turn has come.
    var reached: UInt64 = 0

    var count: Int { pushes.count }
    /// Pushes that are scheduled or sent.
    var openCount: Int { numbers.count - ended.count }

    // MARK: Finding

    /// The push that an owner gave this identifier.
    func find(_ name: OwnedName) -> Push? { byName[name].flatMap { pushes[$0] } }

    /// The push that the owner, or else another one, gave this identifier.
    func findAny(_ name: OwnedName) -> Push? {
        find(name) ?? byPushID[name.name].flatMap { pushes[$0] }
    }

    /// Pushes with lower numbers, the youngest first, and the number for the next call.
    func list(below number: UInt64?, most: Int) -> (pushes: [Push], next: UInt64?) {
        let below = number.map { bound in numbers.prefix { $0 < bound } } ?? numbers[...]
        let listed = below.suffix(most)
        return (
            listed.reversed().compactMap { pushes[$0] },
            listed.startIndex > below.startIndex ? listed.first : nil
        )
    }

    // MARK: Adding and ending

    /// Keeps a number that the store holds from being given again.
    mutating func noteStored(_ number: UInt64) { lastNumber = max(lastNumber, number) }

    mutating func newNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// Adds a push, also a restored one.
    mutating func add(_ push: Push) {
        let number = push.stored.number
        lastNumber = max(lastNumber, number)
        numbers.append(number)
        byName[push.name] = number
        byPushID[push.stored.pushID] = number
        count(push, push.bytes)
        if !push.isEnded { counts.change(push.stored.owner, by: 1) }
        if push.state == .sending { sending.append(number) }
        if push.state == .scheduled { firstDueMs = min(firstDueMs, push.stored.dueMs) }
        pushes[number] = push
        if push.isEnded {
            let endedMs = push.stored.progress.endedMs
            let later = ended.firstIndex {
                pushes[$0].map { $0.stored.progress.endedMs > endedMs } ?? false
            }
            ended.insert(number, at: later ?? ended.endIndex)
        } else {
            wake()
        }
    }

    /// Takes a push out for a change; ``putBack(_:)`` has to follow.
    mutating func take(_ number: UInt64) -> Push? {
        guard let push = pushes.removeValue(forKey: number) else { return nil }
        count(push, -push.bytes)
        return push
    }

    mutating func putBack(_ push: Push) {
        count(push, push.bytes)
        pushes[push.stored.number] = push
    }

    private mutating func count(_ push: Push, _ amount: Int) {
        bytes += amount
        byteCounts.change(push.stored.owner, by: amount)
    }

    /// Ends a push that is taken out.
    mutating func end(_ push: inout Push, _ state: State, at now: Int64) {
        push.end(state, at: now)
        counts.change(push.stored.owner, by: -1)
        ended.append(push.stored.number)
        sending.removeAll { $0 == push.stored.number }
    }

    /// Removes the push that ended first, if that is long ago, or else if there must be room for
    /// another; returns its progress.
    mutating func removeFirstEnded(at now: Int64, forRoom: Bool) -> PushProgress? {
        guard let number = ended.first, let push = pushes[number],
            forRoom || push.stored.progress.endedMs + Self.lifetimeMs <= now
        else { return nil }
        ended.removeFirst()
        numbers.removeAll { $0 == number }
        pushes[number] = nil
        count(push, -push.bytes)
        if byName[push.name] == number { byName[push.name] = nil }
        if byPushID[push.stored.pushID] == number { byPushID[push.stored.pushID] = nil }
        return push.stored.progress
    }

    // MARK: Turns

    /// Pushes whose time has come; they are sent from now on.
    mutating func takeDue(at now: Int64) -> [UInt64] {
        guard firstDueMs <= now else { return [] }
        firstDueMs = .max
        var due: [UInt64] = []
        for number in numbers {
            guard let push = pushes[number], push.state == .scheduled else { continue }
            if push.stored.dueMs <= now {
                due.append(number)
            } else {
                firstDueMs = min(firstDueMs, push.stored.dueMs)
            }
        }
        sending += due
        return due
    }

    /// The next push that has a slice to send; `nil` without one.
    mutating func nextReady(at now: Int64) -> UInt64? {
        for _ in sending.indices {
            nextIndex = nextIndex + 1 < sending.count ? nextIndex + 1 : 0
            let number = sending[nextIndex]
            if let push = pushes[number], push.nextMs(at: now) <= now { return number }
        }
        return nil
    }

    /// Sets the time of the next slice, after those of this turn.
    mutating func schedule(at now: Int64) {
        var next = previews.isEmpty ? firstDueMs : now
        for number in sending {
            if let push = pushes[number] { next = min(next, push.nextMs(at: now)) }
        }
        nextMs = next == .max ? nil : next
    }

    /// Has the next turn look for slices.
    mutating func wake() { nextMs = 0 }

    /// Most clients in the order of one push.
    var mostInOrder: Int {
        min(
            max(Self.mostOrdered / max(1, sending.count), Self.orderedByOne.lowerBound),
            Self.orderedByOne.upperBound)
    }

    /// Answers every question with an error, because the shard stops.
    mutating func abandonAll() {
        for preview in takeAll(&previews) { preview.reply(.failure(.stopping)) }
    }
}

extension Pushes {
    var figures: [FeatureFigure] {
        [
            .gauge("hermes_pushes", "Pushes that are scheduled or under way.", openCount),
            .counter(
                "hermes_push_clients_total", "Clients whose turn in a push has come.", reached),
        ]
    }
}
