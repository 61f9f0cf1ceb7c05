import Structures

/// When the open connections began of whose clients nothing else is known: the histories take a begin
/// with the connection's end, so that most connected clients have no record there.
struct UntoldOpenings {
    struct Opening {
        var sinceMs: Int64
        /// True when the session was present.
        var isResumed: Bool
    }

    /// By connection index: twice the time, plus 1 for a resumed session; 0 for none.
    private var times: [Int64] = []

    /// Keeps when a connection began; `nil` for one that the histories know.
    mutating func set(_ opening: Opening?, of handle: Handle) {
        let index = Int(handle.index)
        if index >= times.count {
            guard opening != nil else { return }
            times.append(contentsOf: repeatElement(0, count: index + 1 - times.count))
        }
        times[index] = opening.map { $0.sinceMs << 1 | ($0.isResumed ? 1 : 0) } ?? 0
    }

    /// The begin of an open connection; `nil` for one that the histories know.
    subscript(handle: Handle) -> Opening? {
        let index = Int(handle.index)
        guard index < times.count, times[index] != 0 else { return nil }
        return Opening(sinceMs: times[index] >> 1, isResumed: times[index] & 1 != 0)
    }

    mutating func removeAll() { times = [] }
}
