import Hummingbird
import Synchronization

/// Hands the newest snapshot of the broker to all who watch it (`GET /v1/events`).
///
/// A snapshot is made once a second for all viewers together, and none while nobody watches. Only
/// the newest one is kept: a viewer that has not taken the last one yet gets none of those between,
/// so that a slow one costs nothing but its connection.
final class SnapshotFeed: Sendable {
    private typealias Waiting = CheckedContinuation<Void, Never>

    private struct State {
        var viewers = 0
        /// The newest event and its number, from 1; `nil` before the first and after the last viewer.
        var newest: (number: UInt64, event: ByteBuffer)?
        var lastNumber: UInt64 = 0
        /// Viewers that have taken the newest event.
        var waitingViewers: [Waiting] = []
        /// ``run(every:_:)`` while nobody watches.
        var waitingMaker: Waiting?
        var isStopped = false

        mutating func takeWaitingViewers() -> [Waiting] {
            defer { waitingViewers = [] }
            return waitingViewers
        }

        mutating func takeMaker() -> [Waiting] {
            defer { waitingMaker = nil }
            return waitingMaker.map { [$0] } ?? []
        }
    }

    private let state = Mutex(State())
    /// The most viewers at a time.
    private let mostViewers: Int

    init(mostViewers: Int) {
        self.mostViewers = mostViewers
    }

    /// Makes an event at once when somebody watches, and then one in each interval, until
    /// ``stop()`` or the task's cancellation.
    func run(every interval: Duration, _ make: @Sendable () async -> ByteBuffer) async {
        defer { stop() }
        while await hasViewers() {
            publish(await make())
            // As far apart after an answer that was late.
            guard (try? await Task.sleep(for: interval)) != nil else { return }
        }
    }

    /// Ends the streams of all viewers; there are no new ones.
    func stop() {
        let waiting = state.withLock { state in
            state.isStopped = true
            return state.takeWaitingViewers() + state.takeMaker()
        }
        for one in waiting { one.resume() }
    }

    /// - Throws: ``Problem`` of kind `overloaded` when there are as many viewers as there may be.
    func join() throws(Problem) -> Viewer {
        let (isTaken, maker) = state.withLock { state -> (Bool, [Waiting]) in
            guard state.viewers < mostViewers else { return (false, []) }
            state.viewers += 1
            return (true, state.takeMaker())
        }
        guard isTaken else {
            throw Problem(
                .overloaded, "\(mostViewers) viewers follow the broker, which is the limit.",
                fix: "Close one of the pages that show it, or ask GET /v1/status instead.",
                headers: [.retryAfter: "5"])
        }
        for one in maker { one.resume() }
        return Viewer(self)
    }

    /// Somebody who watches, until nobody refers to it any more.
    final class Viewer: Sendable {
        private let feed: SnapshotFeed

        fileprivate init(_ feed: SnapshotFeed) {
            self.feed = feed
        }

        deinit { feed.leave() }

        /// The newest event, if its number is not `last`, and otherwise the one that follows.
        ///
        /// - Parameter last: The number of the event taken before, at first 0; becomes that of the
        ///   answer.
        /// - Returns: `nil` when the feed has stopped.
        func next(after last: inout UInt64) async -> ByteBuffer? {
            while true {
                if let (number, event) = feed.newest(after: last) {
                    last = number
                    return event
                }
                guard await feed.waitForEvent(after: last) else { return nil }
            }
        }
    }

    // MARK: Viewers

    private func leave() {
        state.withLock { state in
            state.viewers -= 1
            precondition(state.viewers >= 0, "a viewer left twice")
            // What the next viewer sees first shall be of its own time.
            if state.viewers == 0 { state.newest = nil }
        }
    }

    private func newest(after last: UInt64) -> (number: UInt64, event: ByteBuffer)? {
        state.withLock { state in
            guard !state.isStopped, let newest = state.newest, newest.number != last else {
                return nil
            }
            return newest
        }
    }

    /// Returns when there may be an event; false when the feed has stopped.
    private func waitForEvent(after last: UInt64) async -> Bool {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                let isOver =
                    state.isStopped || state.newest.map { $0.number != last } ?? false
                if !isOver { state.waitingViewers.append(continuation) }
                return isOver
            }
            if isOver { continuation.resume() }
        }
        return state.withLock { !$0.isStopped }
    }

    // MARK: The maker

    /// Waits for a viewer; false when the feed has stopped.
    private func hasViewers() async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    precondition(state.waitingMaker == nil, "a feed is run twice")
                    let isOver = state.isStopped || state.viewers > 0
                    if !isOver { state.waitingMaker = continuation }
                    return isOver
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            stop()
        }
        return state.withLock { !$0.isStopped }
    }

    private func publish(_ event: ByteBuffer) {
        let waiting = state.withLock { state -> [Waiting] in
            guard state.viewers > 0 else { return [] }
            state.lastNumber += 1
            state.newest = (state.lastNumber, event)
            return state.takeWaitingViewers()
        }
        for one in waiting { one.resume() }
    }
}
