import CLinux
import Structures
import Synchronization

/// The results of the store's threads, for the submitting thread and for readers of figures.
final class StoreOutbox: Sendable {
    private struct State {
        var completions: [ClosedRange<UInt64>] = []
        var slices: [QueueSlice] = []
        var buffers: [[UInt8]] = []
        var figures = StoreFigures()
    }

    /// The most buffers that are kept for reuse.
    private static let keptBuffers = 8
    /// The largest buffer that is kept, in bytes.
    private static let largestKeptBuffer = 1 << 20

    private let state = Mutex(State())
    // One flag per kind: a reader that takes completions leaves slices, and is woken for the next
    // of either. Both are written only under the lock.
    private let hasCompletions = Atomic<Bool>(false)
    private let hasSlices = Atomic<Bool>(false)
    private let accepts = Atomic<Bool>(true)
    /// The growth of all that was submitted, in bytes; only the submitting thread changes it.
    private let submitted = Atomic<Int>(0)
    /// The growth up to which may be submitted.
    private let granted = Atomic<Int>(.max)
    private let tight = Atomic<Bool>(false)
    /// Time at which the current commit began, by the monotonic clock; 0 without one.
    private let commitBeganMicroseconds = Atomic<UInt64>(0)
    private let wake: @Sendable () -> Void

    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    var isAccepting: Bool { accepts.load(ordering: .relaxed) }

    /// The growth that may still be submitted, in bytes; negative when more was.
    var room: Int {
        granted.load(ordering: .sequentiallyConsistent)
            - submitted.load(ordering: .sequentiallyConsistent)
    }

    /// True while the store's files have to be as small as they can be.
    var isTight: Bool {
        get { tight.load(ordering: .relaxed) }
        set { tight.store(newValue, ordering: .relaxed) }
    }

    var figures: StoreFigures {
        var figures = state.withLock { $0.figures }
        let began = commitBeganMicroseconds.load(ordering: .relaxed)
        let now = hermes_monotonic_us()
        figures.readAt = MonotonicTime(milliseconds: now / 1_000)
        if began > 0 {
            figures.currentCommitMicroseconds = now > began ? now - began : 0
        }
        return figures
    }

    // MARK: For the store's threads

    /// Changes the figures. Wakes the submitter when new messages can be stored again.
    func update(_ change: (inout StoreFigures) -> Void) {
        let mayGoOn = state.withLock { state in
            change(&state.figures)
            return noteAcceptance(state.figures)
        }
        if mayGoOn { wake() }
    }

    /// Allows to submit up to this much growth in all. Wakes the submitter if it had no room before
    /// and has some now.
    func grant(through growth: Int) {
        let former = granted.exchange(growth, ordering: .sequentiallyConsistent)
        let taken = submitted.load(ordering: .sequentiallyConsistent)
        if taken > former, taken <= growth { wake() }
    }

    func commitBegins(atMicroseconds now: UInt64) {
        commitBeganMicroseconds.store(now, ordering: .relaxed)
    }

    func commitEnded() { commitBeganMicroseconds.store(0, ordering: .relaxed) }

    /// Reports tickets, which must rise from call to call, takes back buffers, and changes the
    /// figures.
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

    /// True if new messages can be stored again. Called under the lock, so that the latest state
    /// wins.
    private func noteAcceptance(_ figures: StoreFigures) -> Bool {
        let isAccepting = figures.isAccepting
        return !accepts.exchange(isAccepting, ordering: .relaxed) && isAccepting
    }

    // MARK: For the thread that submits

    /// Notes the growth of a batch; returns that of all batches up to it.
    func submit(growth: Int) -> Int {
        submitted.add(growth, ordering: .sequentiallyConsistent).newValue
    }

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

    /// An empty buffer for the next batch.
    func takeBuffer() -> [UInt8] { state.withLock { $0.buffers.popLast() ?? [] } }
}
