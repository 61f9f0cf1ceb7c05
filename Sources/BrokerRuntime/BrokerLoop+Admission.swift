import BrokerCore
import Glibc
import Structures
import Transport

/// Who comes in, and when: newcomers wait in the kernel while they come faster than
/// `limits.connect_rate`, and those whose address has had its share are closed at once.
extension BrokerLoop {
    private static var acceptsPerTurn: Int { 256 }
    /// After a connection that could neither be accepted nor refused.
    private static var pauseMilliseconds: UInt64 { 100 }

    /// Accepts from the listeners that have somebody waiting: behind the turn's other events, so that
    /// whoever is connected goes first.
    mutating func acceptWaiting() {
        while acceptable != 0 {
            let listener = acceptable.trailingZeroBitCount
            acceptable &= acceptable - 1
            accept(listener)
        }
    }

    private mutating func accept(_ listener: Int) {
        for number in 0..<Self.acceptsPerTurn {
            guard hasToken() else { return }
            // Behind the first, it is not known whether anybody waits.
            guard hasRoom(onListener: listener, isAwaited: number == 0) else {
                admission.putTokenBack()
                return
            }
            let accepted = reactor.accept(listener, isOneShot: beginsWithTLS(listener))
            if case .connection(let handle) = accepted, open(handle, onListener: listener) {
                continue
            }
            admission.putTokenBack()
            switch accepted {
            case .none: return
            case .connection, .gone: continue
            case .refused: logOpenFiles()
            case .unable(let error):
                if error.code == EMFILE || error.code == ENFILE {
                    logOpenFiles()
                } else {
                    notices.logTurnedAway("none: \(error)", now: shard.now)
                }
                acceptAgainAt = shard.now.advanced(byMilliseconds: Self.pauseMilliseconds)
                updateAccepting()
                return
            }
        }
    }

    private mutating func logOpenFiles() {
        shard.counters.limits.add(.openFiles)
        notices.logTurnedAway(.openFiles, now: shard.now)
    }

    /// Takes a new connection in; false when it was closed instead, for a limit.
    private mutating func open(_ handle: Handle, onListener listener: Int) -> Bool {
        guard reactor.socketCount <= settings.limits.mostConnections else {
            reactor.close(handle)
            shard.counters.limits.add(.maxConnections)
            notices.logTurnedAway(.maxConnections, now: shard.now)
            return false
        }
        let peer = reactor.peerAddress(of: handle)
        // Of whoever comes by a proxy, the header will tell.
        let isProxied = isProxy(peer, ofListener: listener)
        var origin: UInt32 = 0
        if !isProxied {
            guard let key = admit(peer, isSecured: contexts[listener] != nil) else {
                reactor.close(handle)
                return false
            }
            origin = key
        }
        shard.open(handle, listener: listener, origin: origin)
        begin(handle, onListener: listener, isProxied: isProxied)
        return true
    }

    /// A connection's header has named its peer, who counts from here on; false when the peer's address
    /// has had enough.
    mutating func admitProxied(_ handle: Handle) -> Bool {
        let peer = reactor.peerAddress(of: handle)
        guard let origin = admit(peer, isSecured: reactor.isShakingHands(handle)) else {
            admission.putTokenBack()
            handshakeOrder.end(handle)
            shard.lost(handle, .addressLimit)
            return false
        }
        shard.setOrigin(origin, of: handle)
        return true
    }

    /// Called once for each connection, when its peer's address is known: counts it, and returns the key
    /// of its address. `nil` when the address has had enough; then the connection closes.
    mutating func admit(_ peer: PeerAddress, isSecured: Bool) -> UInt32? {
        switch admission.admit(peer, isSecured: isSecured, now: shard.now) {
        case .admitted(let key): return key
        case .refused(let limit):
            shard.counters.limits.add(limit)
            notices.logAddressTurnedAway(limit, peer, now: shard.now)
            return nil
        }
    }

    /// Whether a connection has to share what all connections have with others of its address, as
    /// `limits.connections_per_address` says.
    func sharesByAddress(_ handle: Handle) -> Bool {
        settings.limits.connectionsPerAddress.bound(
            of: settings.limits.maxConnections,
            isLoopback: reactor.peerAddress(of: handle).isLoopback) != nil
    }

    /// Logs what the shard reports; addresses are the loop's to tell.
    mutating func log(_ notice: BrokerNotice) {
        guard case .takeOverDelayed(let report) = notice else {
            notices.log(notice, in: reactor, now: shard.now)
            return
        }
        // It may have been stopped for something else before.
        reactor.stopReading(report.waiting, awaitsEnd: true)
        let peers = [report.connected, report.waiting].map { reactor.address(of: $0) }
        shard.nameTakeOver(report, peers: peers)
        notices.logTakeOverDelayed(report, peers: peers, now: shard.now)
    }

    /// A connection with an address's key closes: its place is free.
    mutating func leave(_ handle: Handle, origin: UInt32) {
        if reactor.isShakingHands(handle) { admission.endHandshake(origin) }
        admission.leave(origin)
    }

    /// Whether one more connection may be accepted now; else all listeners wait for the next token.
    private mutating func hasToken() -> Bool {
        guard !admission.takeToken(now: shard.now) else { return true }
        shard.counters.limits.add(.connectRate)
        notices.logNewcomersWait(.connectRate, now: shard.now)
        acceptAgainAt = admission.nextToken(now: shard.now)
        updateAccepting()
        return false
    }

    /// Accepts again once there is room.
    mutating func resumeAccepting() {
        if let time = acceptAgainAt, time <= shard.now { acceptAgainAt = nil }
        if waitsForHandshakes,
            reactor.handshakeCount < settings.limits.maxHandshakes || displaceHandshake()
        {
            waitsForHandshakes = false
        }
        updateAccepting()
    }

    /// Has each listener accept unless there is a reason to wait.
    mutating func updateAccepting() {
        for listener in isAccepting.indices {
            let accepts =
                acceptAgainAt == nil && memory.pressure == .none
                && !(waitsForHandshakes && contexts[listener] != nil)
            guard accepts != isAccepting[listener] else { continue }
            isAccepting[listener] = accepts
            reactor.setAccepting(listener, accepts)
        }
    }
}
