import Structures
import Transport

/// What has arrived, in the order in which a turn handles it: first what connected clients sent, then
/// what is for newcomers. Each has its share of the turn's time, so that however many come or go at
/// once, a connected client waits for about a millisecond.
extension BrokerLoop {
    /// Bytes that sockets move in one turn before the rest of its events wait for the next.
    private static var bytesPerTurn: UInt64 { 1_024 * 1_024 }
    /// Bytes that take as long to move as to open a TLS record, however little it holds.
    private static var bytesPerRecord: UInt64 { 512 }
    /// Time for messages of other threads.
    private static var mailMicroseconds: UInt64 { 250 }
    /// Time for the events of connected clients. What follows from them, such as the ends of
    /// connections that were lost at once, may take as long again.
    private static var eventsMicroseconds: UInt64 { 500 }
    /// Time for each of: newcomers' events, accepting, closing sockets that have ended.
    static var newcomersMicroseconds: UInt64 { 250 }
    /// Checked logins and handshake steps of one turn: what follows from a login takes some 15 us.
    private static var newcomersPerTurn: Int { 32 }

    /// Handles events until sockets have moved ``bytesPerTurn``, or for a ``Stint`` from the begin of the
    /// turn; the others are the next turn's.
    mutating func handleEvents(from begin: UInt64) {
        let end = moved &+ Self.bytesPerTurn
        var stint = Stint(until: begin + Self.eventsMicroseconds)
        while moved < end, let index = arrivals.nextEvent() {
            handle(reactor.event(index))
            if stint.isOver() { return }
        }
    }

    /// What sockets have moved so far, in bytes.
    private var moved: UInt64 {
        reactor.bytesReceived &+ reactor.bytesSent
            &+ reactor.recordsOpened &* Self.bytesPerRecord
    }

    /// Handles messages of other threads until so many were of newcomers, or for a ``Stint``; the others
    /// are the next turn's.
    mutating func handleMail() {
        if arrivals.hasUntakenMail, !arrivals.hasMail { arrivals.setMail(mailbox.take()) }
        guard arrivals.hasMail else { return }
        var left = Self.newcomersPerTurn
        // One command may take long.
        var stint = Stint(microseconds: Self.mailMicroseconds, stepsBetweenLooks: 1)
        while left > 0, let message = arrivals.nextMail() {
            if message.isOfNewcomer { left -= 1 }
            handle(message)
            if stint.isOver() { return }
        }
    }

    /// Handles events of newcomers for a ``Stint``; the kernel keeps the others for the next turn.
    mutating func handleNewcomers() {
        guard arrivals.haveNewcomers else { return }
        var stint = Stint(microseconds: Self.newcomersMicroseconds)
        var isOver = false
        while arrivals.haveNewcomers, !isOver {
            for index in 0..<reactor.askNewcomers() {
                let event = reactor.newcomerEvent(index)
                handle(event)
                if case .connection(let handle, _, _, _, _) = event, !shard.isNewcomer(handle) {
                    reactor.adopt(handle)
                }
                if stint.isOver() { isOver = true }
            }
            arrivals.haveNewcomers = reactor.mayNewcomersWait
        }
    }

    /// Closes sockets of connections that have ended, for a ``Stint``; the rest follow in the next
    /// turn. Thousands may go at once, and each takes the kernel 10 us and more. While there are so
    /// many that nobody is accepted, they have that time, too.
    mutating func closeEndedSockets() {
        guard reactor.endedSocketCount > 0 else { return }
        let areMany = reactor.endedSocketCount >= Self.mostEndedSockets
        var stint = Stint(
            microseconds: Self.newcomersMicroseconds * (areMany ? 2 : 1), stepsBetweenLooks: 4)
        while reactor.endedSocketCount > 0 {
            reactor.closeEndedSocket()
            if stint.isOver() { return }
        }
    }

    private mutating func handle(_ event: Reactor.Event) {
        switch event {
        case .stale: return
        case .mailbox: arrivals.hasUntakenMail = true
        case .newcomers: arrivals.haveNewcomers = true
        case .acceptable(let listener): acceptable |= 1 << UInt64(listener)
        case .connection(let handle, let isReadable, let isWritable, let isHungUp, let hasEnded):
            if isWritable, !shard.hasRoom(handle) { write(handle) }
            // The shard offers its packets again in the next turn.
            guard isReadable, !shard.awaitsTurn(handle) else { return }
            guard shard.holdsInput(handle) else {
                read(handle)
                return
            }
            // A closed peer would be reported in every turn while its input waits. A waiting
            // CONNECT whose client has closed is dropped.
            let waits = shard.isConnectWaiting(handle)
            if hasEnded && waits {
                shard.lost(handle, .peerClosed)
            } else if isHungUp {
                hangUp(handle)
            } else {
                reactor.stopReading(handle, awaitsEnd: waits)
            }
        }
    }
}
