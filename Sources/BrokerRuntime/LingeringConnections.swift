import Structures

/// Closed connections with unsent output, or whose peers still have to read it.
struct LingeringConnections {
    struct Connection: BitwiseCopyable {
        let handle: Handle
        /// The key of the peer's address; 0 when it is unknown.
        let origin: UInt32
        /// True once all output is sent and the broker's direction has ended.
        var isFinished = false
    }

    private struct Deadline: BitwiseCopyable {
        let handle: Handle
        let time: MonotonicTime
    }

    /// By connection index.
    private var connections: [UInt32: Connection] = [:]
    /// All linger equally long, so the first is always the next; some have closed before.
    private var deadlines: [Deadline] = []
    private var passed = 0

    /// The first time at which a connection may have to close.
    var nextDeadline: MonotonicTime? {
        passed < deadlines.count ? deadlines[passed].time : nil
    }

    /// `deadline` is not before that of any other.
    mutating func add(_ handle: Handle, origin: UInt32, until deadline: MonotonicTime) {
        connections[handle.index] = Connection(handle: handle, origin: origin)
        deadlines.append(Deadline(handle: handle, time: deadline))
    }

    /// The key of the peer's address; `nil` when the connection does not linger.
    func origin(of handle: Handle) -> UInt32? { find(handle)?.origin }

    /// Called when the connection's output is sent; true for the first time, if it lingers.
    mutating func finish(_ handle: Handle) -> Bool {
        guard let connection = find(handle), !connection.isFinished else { return false }
        connections[handle.index]?.isFinished = true
        return true
    }

    mutating func remove(_ handle: Handle) { connections[handle.index] = nil }

    /// The next connection whose time is over, which lingers no more; `nil` for none.
    mutating func popExpired(now: MonotonicTime) -> Connection? {
        while let time = nextDeadline, time <= now {
            let handle = deadlines[passed].handle
            passed += 1
            // Moves each of the others once for each that has passed, at most.
            if 2 * passed >= deadlines.count {
                deadlines.removeFirst(passed)
                passed = 0
            }
            if let connection = find(handle) {
                connections[handle.index] = nil
                return connection
            }
        }
        return nil
    }

    private func find(_ handle: Handle) -> Connection? {
        guard let connection = connections[handle.index], connection.handle == handle else {
            return nil
        }
        return connection
    }
}
