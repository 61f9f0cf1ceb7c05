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
    private let hasNews = Atomic<Bool>(false)
    private let accepts = Atomic<Bool>(true)
    private let wake: @Sendable () -> Void

    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    var isAccepting: Bool { accepts.load(ordering: .relaxed) }
    var figures: StoreFigures { state.withLock { $0.figures } }

    /// Changes what is known of the store; whoever submits is woken when it may publish again.
    func update(_ change: (inout StoreFigures) -> Void) {
        let isAccepting = state.withLock { state in
            change(&state.figures)
            return state.figures.isAccepting
        }
        let was = accepts.exchange(isAccepting, ordering: .relaxed)
        if isAccepting, !was { wake() }
    }

    func complete(_ tickets: [ClosedRange<UInt64>], buffers: [[UInt8]]) {
        publish { state in
            state.completions.append(contentsOf: tickets)
            for buffer in buffers
            where state.buffers.count < Self.keptBuffers
                && buffer.capacity <= Self.largestKeptBuffer
            {
                state.buffers.append(buffer)
            }
        }
    }

    func deliver(_ slice: QueueSlice) { publish { $0.slices.append(slice) } }

    func takeCompletions(_ tickets: inout [ClosedRange<UInt64>]) {
        guard hasNews.load(ordering: .acquiring) else { return }
        state.withLock { state in
            tickets.append(contentsOf: state.completions)
            state.completions.removeAll(keepingCapacity: true)
            if state.slices.isEmpty { hasNews.store(false, ordering: .relaxed) }
        }
    }

    func takeSlices(_ slices: inout [QueueSlice]) {
        guard hasNews.load(ordering: .acquiring) else { return }
        state.withLock { state in
            slices.append(contentsOf: state.slices)
            state.slices.removeAll()
            if state.completions.isEmpty { hasNews.store(false, ordering: .relaxed) }
        }
    }

    /// An emptied buffer for the next batch.
    func takeBuffer() -> [UInt8] { state.withLock { $0.buffers.popLast() ?? [] } }

    private func publish(_ change: (inout State) -> Void) {
        let isFirst = state.withLock { state in
            change(&state)
            return !hasNews.exchange(true, ordering: .releasing)
        }
        if isFirst { wake() }
    }
}
