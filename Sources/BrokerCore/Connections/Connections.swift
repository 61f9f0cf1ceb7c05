import Structures

/// The connections of a shard: their records, their timers, and the lists of those for which something is
/// to be done in this turn.
struct Connections: ~Copyable {
    /// A connection that ends with the turn.
    struct Ending: Sendable {
        let handle: Handle
        let reason: CloseReason
        /// The protocol that the peer speaks instead of MQTT, if that is known.
        let opening: ForeignProtocol?
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var records = Slab<Connection>()
    private var timers: TimerWheel
    /// Connections whose output is sent in this turn.
    private var dirty = GrowableBuffer<Handle>()
    private var ending: [Ending] = []
    private var closing: [Closing] = []
    private var resumed: [Handle] = []
    private var overdue: [Handle] = []
    /// Connections whose next packet waits for the store, in the order of waiting. Those that have closed
    /// since are still in it, until there are more of them than of the others.
    private var storeWaiters: [Handle] = []
    private var storeWaiterCount = 0
    /// Connections without CONNACK.
    private(set) var pendingCount = 0
    /// Connections whose CONNACK has left.
    private(set) var activeCount = 0

    init(now: MonotonicTime) { timers = TimerWheel(now: now) }

    // MARK: Records

    subscript(handle: Handle) -> Connection {
        @inline(__always) unsafeAddress { UnsafePointer(records.pointer(to: handle.index)) }
        @inline(__always) unsafeMutableAddress { records.pointer(to: handle.index) }
    }

    /// Whether the handle names a connection that has not been closed.
    @inline(__always)
    func isCurrent(_ handle: Handle) -> Bool {
        handle.index < records.endIndex && records[handle.index].generation == handle.generation
    }

    /// Whether the handle names a connection that has not been closed and does not end with the turn.
    func isLive(_ handle: Handle) -> Bool {
        isCurrent(handle) && !records[handle.index].machine.isEnding
    }

    /// A connection was accepted; its CONNECT must come before the deadline.
    mutating func open(
        _ handle: Handle, listener: Int, origin: UInt32, now: MonotonicTime,
        deadline: MonotonicTime
    ) {
        var connection = Connection(
            generation: handle.generation, listener: UInt8(truncatingIfNeeded: listener),
            origin: origin)
        connection.keepAlive.heard(at: now)
        connection.timer = timers.schedule(handle.packed, at: deadline)
        records.place(connection, at: handle.index)
        pendingCount += 1
    }

    /// CONNACK leaves with code 0.
    mutating func noteOpened(_ handle: Handle) {
        pendingCount -= 1
        activeCount += 1
    }

    /// Every connection that has not been closed.
    func forEach(_ body: (Handle, Connection) -> Void) {
        for index in 0..<records.endIndex where records[index].generation != 0 {
            body(Handle(index: index, generation: records[index].generation), records[index])
        }
    }

    // MARK: The end of a connection

    /// Ends the connection at the end of the turn: closing publishes wills, and must not happen while
    /// another message is being routed.
    mutating func end(
        _ handle: Handle, _ reason: CloseReason, opening: ForeignProtocol? = nil, pool: BytePool
    ) {
        guard records[handle.index].machine.end(releasingIn: pool) else { return }
        ending.append(Ending(handle: handle, reason: reason, opening: opening))
    }

    /// Connections that end with this turn, in the order in which that was decided.
    mutating func takeEnding() -> [Ending] { takeAll(&ending) }

    /// Frees the record of a connection and hands it out; the caller is done with its will and its output.
    /// With `owesOutput` the unsent bytes stay, until ``discardOutput(_:pool:)``.
    mutating func close(_ handle: Handle, owesOutput: Bool, pool: BytePool) -> Connection {
        var connection = records[handle.index]
        if connection.machine.isOpen { activeCount -= 1 } else { pendingCount -= 1 }
        if connection.timer != noIndex { timers.cancel(connection.timer) }
        if connection.intake.awaitsStore { storeWaiterCount -= 1 }
        connection.intake.removeAll(in: pool)
        connection.permit?.release(in: pool)
        if !owesOutput { connection.outlet.removeAll(in: pool) }
        var unused = Connection.unused
        unused.outlet = connection.outlet.afterClose
        records[handle.index] = unused
        closing.append(
            Closing(connection: handle, afterOutput: owesOutput, origin: connection.origin))
        return connection
    }

    /// Connections that the sockets' owner has to close.
    mutating func takeClosing() -> [Closing] { takeAll(&closing) }

    /// Frees the output of a connection that was closed after its output.
    mutating func discardOutput(_ handle: Handle, pool: BytePool) {
        records[handle.index].outlet.removeAll(in: pool)
    }

    // MARK: Output

    /// The connection's output is sent in this turn.
    @inline(__always)
    mutating func markDirty(_ handle: Handle) {
        guard records[handle.index].outlet.setListed(true) else { return }
        dirty.append(handle)
    }

    /// One connection whose output has to be sent in this turn.
    @inline(__always)
    mutating func takeDirty() -> Handle? {
        while let handle = dirty.popLast() {
            guard isCurrent(handle) else { continue }
            _ = records[handle.index].outlet.setListed(false)
            return handle
        }
        return nil
    }

    // MARK: Input

    /// Held-back input of the connection counts from now on.
    mutating func resume(_ handle: Handle, now: MonotonicTime) {
        // The keep alive counts from here: the silence before was the broker's.
        records[handle.index].keepAlive.heard(at: now)
        resumed.append(handle)
    }

    mutating func takeResumed() -> [Handle] { takeAll(&resumed) }

    /// The connection's next packet waits for the store.
    mutating func awaitStore(_ handle: Handle) {
        records[handle.index].intake.awaitStore()
        if storeWaiters.count > 2 * storeWaiterCount + 64 {
            storeWaiters = storeWaiters.filter {
                isCurrent($0) && records[$0.index].intake.awaitsStore
            }
        }
        storeWaiters.append(handle)
        storeWaiterCount += 1
    }

    /// The store takes messages again: hands out the connections that waited, in the order of waiting.
    mutating func takeStoreWaiters() -> [Handle] {
        guard !storeWaiters.isEmpty else { return [] }
        storeWaiterCount = 0
        return takeAll(&storeWaiters).filter {
            isCurrent($0) && records[$0.index].intake.storeAccepts()
        }
    }

    // MARK: Timers

    /// The next connection whose timer is due, which has no timer from now on.
    mutating func popExpired(now: MonotonicTime) -> Handle? {
        while let payload = timers.popExpired(now: now) {
            let handle = Handle(packed: payload)
            guard isCurrent(handle) else { continue }
            records[handle.index].timer = noIndex
            return handle
        }
        return nil
    }

    /// Sets the connection's one timer.
    mutating func setTimer(_ handle: Handle, at time: MonotonicTime) {
        let timer = records[handle.index].timer
        if timer != noIndex {
            timers.reschedule(timer, at: time)
        } else {
            records[handle.index].timer = timers.schedule(handle.packed, at: time)
        }
    }

    /// Sets the timer to the next look at the keep alive, or takes it away.
    mutating func setKeepAliveTimer(_ handle: Handle, now: MonotonicTime) {
        let connection = records[handle.index]
        if let time = connection.keepAlive.nextCheck(
            at: now, isPaused: connection.intake.isPaused)
        {
            setTimer(handle, at: time)
        } else if connection.timer != noIndex {
            timers.cancel(connection.timer)
            records[handle.index].timer = noIndex
        }
    }

    func isOverdue(_ handle: Handle, now: MonotonicTime) -> Bool {
        let connection = records[handle.index]
        return connection.keepAlive.isOverdue(at: now, isPaused: connection.intake.isPaused)
    }

    /// The connection closes unless its socket holds a packet.
    mutating func markOverdue(_ handle: Handle) { overdue.append(handle) }

    mutating func takeOverdue() -> [Handle] { takeAll(&overdue) }

    var nextDeadline: MonotonicTime? { timers.nextDeadline }

    /// Whether the next turn has work here without any event.
    var hasWork: Bool { !dirty.isEmpty || !ending.isEmpty || !resumed.isEmpty }
}

/// A connection that the sockets' owner has to close.
package struct Closing: Sendable {
    package let connection: Handle
    /// Send the output first, and let the peer read it.
    package let afterOutput: Bool
    /// The key of the peer's address, as ``Shard/open(_:listener:origin:)`` got it.
    package let origin: UInt32
}

/// Empties an array and hands out its elements.
func takeAll<Element>(_ array: inout [Element]) -> [Element] {
    guard !array.isEmpty else { return [] }
    var taken: [Element] = []
    swap(&taken, &array)
    return taken
}
