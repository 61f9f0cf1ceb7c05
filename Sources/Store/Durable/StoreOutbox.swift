import CLinux
import Synchronization

/// What the store's threads have to say, for the thread that submits and for whoever asks for figures.
final class StoreOutbox: Sendable {
    private struct State {
        var completions: [ClosedRange<UInt64>] = []
        var slices: [QueueSlice] = []
        var buffers: [[UInt8]] = []
        var figures = StoreFigures()
    }

    /// Buffers of batches that are kept for reuse, and the largest one worth keeping, in bytes.
    private static let keptBuffers = 8
    private static let largestKeptBuffer = 1 << 20

    private let state = Mutex(State())
    // One flag for each kind: whoever takes the one leaves the other, and is woken for what comes
    // next of either. Both are written under the lock only.
    private let hasCompletions = Atomic<Bool>(false)
    private let hasSlices = Atomic<Bool>(false)
    private let accepts = Atomic<Bool>(true)
    /// When the commit under way began, by the monotonic clock; 0 while there is none.
    private let commitBeganMicroseconds = Atomic<UInt64>(0)
    private let wake: @Sendable () -> Void

    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    var isAccepting: Bool { accepts.load(ordering: .relaxed) }

    var figures: StoreFigures {
        var figures = state.withLock { $0.figures }
        let began = commitBeganMicroseconds.load(ordering: .relaxed)
        if began > 0 {
            let now = hermes_monotonic_us()
            figures.currentCommitMicroseconds = now > began ? now - began : 0
        }
        return figures
    }

    // MARK: For the store's threads

    /// Changes what is known of the store; whoever submits is woken when it may publish again.
    func update(_ change: (inout StoreFigures) -> Void) {
        let mayGoOn = state.withLock { state in
            change(&state.figures)
            return noteAcceptance(state.figures)
        }
        if mayGoOn { wake() }
    }

    func commitBegins(atMicroseconds now: UInt64) {
        commitBeganMicroseconds.store(now, ordering: .relaxed)
    }

    func commitEnded() { commitBeganMicroseconds.store(0, ordering: .relaxed) }

    /// Reports tickets that rise from call to call, takes back their buffers, and changes figures.
    func complete(
        _ tickets: ClosedRange<UInt64>?, buffers: [[UInt8]],
        _ change: (inout StoreFigures) -> Void
    ) {
        let mustWake = state.withLock { state in
            change(&state.figures)
            let mayGoOn = noteAcceptance(state.figures)
            for buffer in buffers
            where state.buffers.count < Self.keptBuffers
                && buffer.capacity <= Self.largestKeptBuffer
            {
                state.buffers.append(buffer)
            }
            guard let tickets else { return mayGoOn }
            if let last = state.completions.last, last.upperBound + 1 == tickets.lowerBound {
                state.completions[state.completions.count - 1] =
                    last.lowerBound...tickets.upperBound
            } else {
                state.completions.append(tickets)
            }
            return !hasCompletions.exchange(true, ordering: .releasing) || mayGoOn
        }
        if mustWake { wake() }
    }

    func deliver(_ slice: QueueSlice) {
        let isFirst = state.withLock { state in
            state.slices.append(slice)
            return !hasSlices.exchange(true, ordering: .releasing)
        }
        if isFirst { wake() }
    }

    /// True if new messages can be stored again; called under the lock, so that the last word stays.
    private func noteAcceptance(_ figures: StoreFigures) -> Bool {
        let isAccepting = figures.isAccepting
        return !accepts.exchange(isAccepting, ordering: .relaxed) && isAccepting
    }

    // MARK: For the thread that submits

    func takeCompletions(_ tickets: inout [ClosedRange<UInt64>]) {
        guard hasCompletions.load(ordering: .acquiring) else { return }
        state.withLock { state in
            tickets.append(contentsOf: state.completions)
            state.completions.removeAll(keepingCapacity: true)
            hasCompletions.store(false, ordering: .relaxed)
        }
    }

    func takeSlices(_ slices: inout [QueueSlice]) {
        guard hasSlices.load(ordering: .acquiring) else { return }
        state.withLock { state in
            slices.append(contentsOf: state.slices)
            state.slices.removeAll()
            hasSlices.store(false, ordering: .relaxed)
        }
    }

    /// An emptied buffer for the next batch.
    func takeBuffer() -> [UInt8] { state.withLock { $0.buffers.popLast() ?? [] } }
}
