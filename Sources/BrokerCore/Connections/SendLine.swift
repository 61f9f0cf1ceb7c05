import Structures

/// The connections whose output has to be sent, in the order of sending.
///
/// Two lines share a turn's sends. In the first one stand those with little unsent
/// (``Outlet/littleBytes``): answers, and messages to few. Behind them stand those with more, which
/// send ``Outlet/mostSentAtOnce`` and then go to the end, and the receivers of messages to many: one
/// client would else put hundreds of sends before everybody's answers. The line behind has a quarter
/// of the sends while somebody stands in the first one, else all. A connection may stand in both.
struct SendLine: ~Copyable {
    /// Receivers of one client's messages that may stand in the first line, together with all who
    /// stand there already. A send takes some 7 us.
    private static var firstPlaces: Int { 16 }
    /// Receivers of one client's messages that may stand there in any case, for conversations of two.
    private static var leastPlaces: Int { 4 }
    /// Units of the first line for each unit of the line behind.
    private static var firstShare: Int { 3 }
    /// The most units that the line behind is owed: one send of the most bytes.
    private static var mostOwed: Int { firstShare * (1 + Outlet.mostSentAtOnce >> 13) }

    private var first = RingBuffer<Handle>()
    private var behind = RingBuffer<Handle>()
    /// Receivers that the present source may still put into the first line.
    private var places = SendLine.firstPlaces
    /// While true, a connection is listed for a message to many.
    private var fansOut = false
    /// Units that the first line has sent while others stood behind it.
    private var owed = 0

    var isEmpty: Bool { first.count == 0 && behind.count == 0 }

    // MARK: Entering

    /// Begins the messages of another client, or of the admin plane.
    @inline(__always)
    mutating func beginSource() {
        places = max(Self.leastPlaces, Self.firstPlaces - first.count)
    }

    /// Begins a delivery to so many receivers.
    @inline(__always)
    mutating func beginDelivery(to receivers: Int) {
        fansOut = receivers > places
        if !fansOut { places -= receivers }
    }

    @inline(__always)
    mutating func endDelivery() { fansOut = false }

    @inline(__always)
    mutating func add(_ handle: Handle, to record: UnsafeMutablePointer<Connection>) {
        guard !fansOut else {
            addToMany(handle, record)
            return
        }
        if record.pointee.outlet.list(.first) { first.append(handle) }
    }

    /// Lists a receiver of a message to many, unless its output is sent before.
    @inline(__always)
    private mutating func addToMany(_ handle: Handle, _ record: UnsafeMutablePointer<Connection>) {
        if record.pointee.outlet.listing.isEmpty { addBehind(handle, to: record) }
    }

    mutating func addBehind(_ handle: Handle, to record: UnsafeMutablePointer<Connection>) {
        if record.pointee.outlet.list(.behind) { behind.append(handle) }
    }

    // MARK: Leaving

    /// The connection whose output is sent next; `record` finds its record, `nil` once it is closed.
    @inline(__always)
    mutating func next(
        _ record: (Handle) -> UnsafeMutablePointer<Connection>?
    ) -> Handle? {
        guard behind.count > 0 else {
            if let handle = takeFirst(record) { return handle }
            // What stood in the first line with much unsent stands behind now.
            return behind.count > 0 ? takeBehind(record) : nil
        }
        return nextOfBoth(record)
    }

    @inline(never)
    private mutating func nextOfBoth(
        _ record: (Handle) -> UnsafeMutablePointer<Connection>?
    ) -> Handle? {
        if owed >= Self.mostOwed, let handle = takeBehind(record) { return handle }
        return takeFirst(record) ?? takeBehind(record)
    }

    @inline(__always)
    private mutating func takeFirst(
        _ record: (Handle) -> UnsafeMutablePointer<Connection>?
    ) -> Handle? {
        while let handle = first.popFirst() {
            guard let record = record(handle) else { continue }
            record.pointee.outlet.unlist(.first)
            guard record.pointee.outlet.isLittle else {
                addBehind(handle, to: record)
                continue
            }
            if behind.count > 0 { owed += record.pointee.outlet.sendUnits }
            return handle
        }
        return nil
    }

    private mutating func takeBehind(
        _ record: (Handle) -> UnsafeMutablePointer<Connection>?
    ) -> Handle? {
        while let handle = behind.popFirst() {
            guard let record = record(handle) else { continue }
            record.pointee.outlet.unlist(.behind)
            // It may have been sent from the first line since.
            guard !record.pointee.outlet.isEmpty else { continue }
            if first.count > 0 { owed -= Self.firstShare * record.pointee.outlet.sendUnits }
            return handle
        }
        return nil
    }
}
