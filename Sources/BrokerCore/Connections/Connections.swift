import Structures

/// The connections of a shard, their timers, and lists of those with work in this turn.
package struct Connections: ~Copyable {
    /// A connection that ends with the turn.
    package struct Ending: BitwiseCopyable {
        package let handle: Handle
        package let reason: CloseReason
        /// The protocol of a peer that does not speak MQTT; `nil` if unknown.
        package let opening: ForeignProtocol?
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var records = Slab<Connection>()
    private var timers: TimerWheel
    /// Connections with output to send.
    private var sendLine = SendLine()
    private var ending = RingBuffer<Ending>()
    private var closing: [Closing] = []
    private var resumed = RingBuffer<Handle>()
    private var overdue = RingBuffer<Handle>()
    /// Connections whose next packet waits for a later turn, in the order of waiting.
    private var turnWaiters = RingBuffer<Handle>()
    /// Connections whose next packet waits for the store, in the order of waiting. Closed ones are
    /// removed once they outnumber the others.
    private var storeWaiters = RingBuffer<Handle>()
    private var storeWaiterCount = 0
    /// The first so many of ``storeWaiters`` go on, because the store accepts messages again.
    private var releasedCount = 0
    /// Connections without CONNACK.
    package private(set) var pendingCount = 0
    /// Connections whose CONNACK has left.
    package private(set) var activeCount = 0

    /// Connections that have not been closed.
    package var count: Int { pendingCount + activeCount }

    package init(now: MonotonicTime) { timers = TimerWheel(now: now) }

    // MARK: Records

    package subscript(handle: Handle) -> Connection {
        @inline(__always) unsafeAddress { UnsafePointer(records.pointer(to: handle.index)) }
        @inline(__always) unsafeMutableAddress { records.pointer(to: handle.index) }
    }

    /// True until the connection is closed.
    @inline(__always)
    package func isCurrent(_ handle: Handle) -> Bool {
        handle.index < records.endIndex && records[handle.index].generation == handle.generation
    }

    /// True until the connection is closed or set to end with the turn.
    package func isLive(_ handle: Handle) -> Bool {
        isCurrent(handle) && !records[handle.index].machine.isEnding
    }

    /// Adds an accepted connection and starts the deadline of its CONNECT.
    package mutating func open(
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

    /// Counts a connection whose CONNACK has code 0.
    package mutating func noteOpened() {
        pendingCount -= 1
        activeCount += 1
    }

    /// Indices of connections are below.
    package var endIndex: UInt32 { records.endIndex }

    /// The connection with an index; `nil` without one.
    package func current(at index: UInt32) -> Handle? {
        let generation = records[index].generation
        return generation == 0 ? nil : Handle(index: index, generation: generation)
    }

    /// Calls `body` for every connection that has not been closed.
    package func forEach(_ body: (Handle, Connection) -> Void) {
        for index in 0..<records.endIndex where records[index].generation != 0 {
            body(Handle(index: index, generation: records[index].generation), records[index])
        }
    }

    // MARK: The end of a connection

    /// Ends the connection at the end of the turn. Closing publishes wills, which must not happen
    /// while another message is being routed.
    package mutating func end(
        _ handle: Handle, _ reason: CloseReason, opening: ForeignProtocol? = nil, pool: BytePool
    ) {
        guard records[handle.index].machine.end(releasingIn: pool) else { return }
        ending.append(Ending(handle: handle, reason: reason, opening: opening))
    }

    @inline(__always)
    package var hasEnding: Bool { ending.count > 0 }

    package var endingCount: Int { ending.count }

    /// Takes back what ``popEnding()`` has returned, behind the others.
    package mutating func putBack(_ connection: Ending) { ending.append(connection) }

    /// The next connection that ends with this turn, in order.
    package mutating func popEnding() -> Ending? { ending.popFirst() }

    /// Frees a connection's record and returns it. The caller has dealt with its will and its
    /// output. With `owesOutput` the unsent bytes stay until ``discardOutput(_:pool:)``.
    package mutating func close(
        _ handle: Handle, _ reason: CloseReason, owesOutput: Bool, pool: BytePool
    ) -> Connection {
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
            Closing(
                connection: handle, reason: reason, afterOutput: owesOutput,
                origin: connection.origin))
        return connection
    }

    package var hasClosing: Bool { !closing.isEmpty }

    /// Connections that the caller of the turn has to close.
    package mutating func takeClosing() -> [Closing] { takeAll(&closing) }

    /// Frees the output of a connection that lingered after its close.
    package mutating func discardOutput(_ handle: Handle, pool: BytePool) {
        records[handle.index].outlet.removeAll(in: pool)
    }

    // MARK: Output

    /// Has the connection's output sent in this turn, or soon; see ``SendLine``.
    @inline(__always)
    package mutating func markDirty(_ handle: Handle) {
        sendLine.add(handle, to: records.pointer(to: handle.index))
    }

    /// Has the rest of an output sent, of which others have now had their share before.
    package mutating func markRest(_ handle: Handle) {
        sendLine.addBehind(handle, to: records.pointer(to: handle.index))
    }

    /// Begins what one client, or the admin plane, causes for others in this turn.
    @inline(__always)
    package mutating func beginSource() { sendLine.beginSource() }

    /// Begins the delivery of a message, or of several, to so many receivers; ``endDelivery()`` follows.
    @inline(__always)
    package mutating func beginDelivery(to receivers: Int) {
        sendLine.beginDelivery(to: receivers)
    }

    @inline(__always)
    package mutating func endDelivery() { sendLine.endDelivery() }

    /// True when a connection's output has to be sent.
    package var hasUnsent: Bool { !sendLine.isEmpty }

    /// Takes one connection whose output has to be sent.
    @inline(__always)
    package mutating func takeDirty() -> Handle? {
        sendLine.next { handle in
            guard handle.index < records.endIndex else { return nil }
            let record = records.pointer(to: handle.index)
            return record.pointee.generation == handle.generation ? record : nil
        }
    }

    // MARK: Input

    /// Has held-back input of the connection offered again in this turn.
    package mutating func resume(_ handle: Handle, now: MonotonicTime) {
        // The client was silent because the broker did not read, so its keep alive starts anew.
        records[handle.index].keepAlive.heard(at: now)
        resumed.append(handle)
    }

    package var resumedCount: Int { resumed.count }

    /// The next connection whose held-back input is offered again, in the order of ``resume(_:now:)``.
    package mutating func popResumed() -> Handle? { resumed.popFirst() }

    /// Has the connection's next packet wait for a later turn.
    package mutating func awaitTurn(_ handle: Handle) {
        records[handle.index].intake.awaitTurn()
        turnWaiters.append(handle)
    }

    package var turnWaiterCount: Int { turnWaiters.count }

    /// The next connection whose packets wait for a turn; they are read again.
    package mutating func popTurnWaiter(now: MonotonicTime) -> Handle? {
        while let handle = turnWaiters.popFirst() {
            guard isCurrent(handle), records[handle.index].intake.beginTurn() else { continue }
            records[handle.index].keepAlive.heard(at: now)
            return handle
        }
        return nil
    }

    /// Adds the connection to those whose next packet waits for the store.
    package mutating func awaitStore(_ handle: Handle) {
        records[handle.index].intake.awaitStore()
        if storeWaiters.count > 2 * storeWaiterCount + 64 { sweepStoreWaiters() }
        storeWaiters.append(handle)
        storeWaiterCount += 1
    }

    private mutating func sweepStoreWaiters() {
        let (all, released) = (storeWaiters.count, releasedCount)
        for place in 0..<all {
            guard let handle = storeWaiters.popFirst() else { return }
            if isCurrent(handle), records[handle.index].intake.awaitsStore {
                storeWaiters.append(handle)
            } else if place < released {
                releasedCount -= 1
            }
        }
    }

    /// Lets all that wait for the store go on, with ``popStoreWaiter()``.
    package mutating func releaseStoreWaiters() { releasedCount = storeWaiters.count }

    /// True while connections that have waited for the store may go on.
    package var hasReleased: Bool { releasedCount > 0 }

    /// The next connection that has waited for the store and may go on, in the order of waiting.
    package mutating func popStoreWaiter() -> Handle? {
        while releasedCount > 0, let handle = storeWaiters.popFirst() {
            releasedCount -= 1
            guard isCurrent(handle), records[handle.index].intake.storeAccepts() else { continue }
            storeWaiterCount -= 1
            return handle
        }
        return nil
    }

    // MARK: Timers

    /// The next connection whose timer has expired; its timer is removed.
    package mutating func popExpired(now: MonotonicTime) -> Handle? {
        while let payload = timers.popExpired(now: now) {
            let handle = Handle(packed: payload)
            guard isCurrent(handle) else { continue }
            records[handle.index].timer = noIndex
            return handle
        }
        return nil
    }

    package mutating func setTimer(_ handle: Handle, at time: MonotonicTime) {
        let timer = records[handle.index].timer
        if timer != noIndex {
            timers.reschedule(timer, at: time)
        } else {
            records[handle.index].timer = timers.schedule(handle.packed, at: time)
        }
    }

    /// Sets the timer to the next keep alive check, or removes it.
    package mutating func setKeepAliveTimer(_ handle: Handle, now: MonotonicTime) {
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

    package func isOverdue(_ handle: Handle, now: MonotonicTime) -> Bool {
        let connection = records[handle.index]
        return connection.keepAlive.isOverdue(at: now, isPaused: connection.intake.isPaused)
    }

    /// Marks a connection whose keep alive has expired; it closes unless its socket holds a packet.
    package mutating func markOverdue(_ handle: Handle) { overdue.append(handle) }

    package mutating func popOverdue() -> Handle? { overdue.popFirst() }

    package var nextDeadline: MonotonicTime? { timers.nextDeadline }

    /// True when the next turn has work here without any event.
    package var hasWork: Bool {
        hasUnsent || ending.count > 0 || resumed.count > 0 || turnWaiters.count > 0
            || hasReleased
    }
}

/// A connection that the caller of the turn has to close.
public struct Closing: Sendable {
    public let connection: Handle
    public let reason: CloseReason
    /// Send the output first, and give the peer time to read it.
    public let afterOutput: Bool
    /// The key of the peer's address, as ``Shard/open(_:listener:origin:)`` got it.
    public let origin: UInt32
}

/// Empties an array and hands out its elements.
package func takeAll<Element>(_ array: inout [Element]) -> [Element] {
    guard !array.isEmpty else { return [] }
    var taken: [Element] = []
    swap(&taken, &array)
    return taken
}
