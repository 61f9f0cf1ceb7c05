import Synchronization

/// Hands lines from the reader of a batch to its writer. It holds one group, so that a slow writer
/// stops the reader, and that what comes while a group is under way makes the next one.
final class BatchLines<Item: BatchItem>: Sendable {
    private struct State {
        var group: LineGroup<Item>?
        var hasEnded = false
        /// The reader, which waits for the group to be taken.
        var reader: CheckedContinuation<Void, Never>?
        /// The writer, which waits for a group.
        var writer: CheckedContinuation<Void, Never>?

        mutating func takeReader() -> CheckedContinuation<Void, Never>? {
            defer { reader = nil }
            return reader
        }

        mutating func takeWriter() -> CheckedContinuation<Void, Never>? {
            defer { writer = nil }
            return writer
        }
    }

    private let state = Mutex(State())

    /// True when a group waits for the writer.
    var isWaiting: Bool { state.withLock { $0.group != nil } }

    /// Adds a group; waits while there is no room for it. Drops it after the end.
    func put(_ group: LineGroup<Item>) async {
        while !add(group) {
            await withCheckedContinuation { continuation in
                let isNow = state.withLock { state in
                    if state.group == nil || state.hasEnded { return true }
                    state.reader = continuation
                    return false
                }
                if isNow { continuation.resume() }
            }
        }
    }

    /// False when there is no room for the group.
    private func add(_ group: LineGroup<Item>) -> Bool {
        let (isTaken, writer) = state.withLock { state in
            if state.hasEnded { return (true, state.takeWriter()) }
            guard state.group != nil else {
                state.group = group
                return (true, state.takeWriter())
            }
            return (state.group?.merge(group) ?? true, nil)
        }
        writer?.resume()
        return isTaken
    }

    /// Takes the next group; `nil` after the last.
    func take() async -> LineGroup<Item>? {
        while true {
            let (group, hasEnded, reader) = state.withLock { state in
                defer { state.group = nil }
                return (state.group, state.hasEnded, state.takeReader())
            }
            reader?.resume()
            if group != nil || hasEnded { return group }
            await withCheckedContinuation { continuation in
                let isNow = state.withLock { state in
                    if state.group != nil || state.hasEnded { return true }
                    state.writer = continuation
                    return false
                }
                if isNow { continuation.resume() }
            }
        }
    }

    /// Ends the batch, for the reader as for the writer; a group that waits can still be taken.
    func end() {
        let (reader, writer) = state.withLock { state in
            state.hasEnded = true
            return (state.takeReader(), state.takeWriter())
        }
        reader?.resume()
        writer?.resume()
    }
}
