/// The store for `durability: none`: what is submitted counts as stored at once, and is lost when
/// the process ends.
public final class MemoryStore: Store {
    private var completed: ClosedRange<UInt64>?

    public init() {}

    public var isRecording: Bool { false }
    public var isAccepting: Bool { true }

    public func submit(_ batch: inout WriteBatch) {
        defer { batch.clear() }
        guard batch.groupCount > 0 else { return }
        let first = batch.lastTicket - UInt64(batch.groupCount) + 1
        completed = min(completed?.lowerBound ?? first, first)...batch.lastTicket
    }

    public func takeCompletions(_ tickets: inout [ClosedRange<UInt64>]) {
        guard let completed else { return }
        tickets.append(completed)
        self.completed = nil
    }

    public func read(_ request: QueueRead) {
        preconditionFailure("a store that keeps nothing was asked for messages")
    }

    public func takeSlices(_ slices: inout [QueueSlice]) {}
}
