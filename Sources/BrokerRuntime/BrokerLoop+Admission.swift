import Addresses
import BrokerCore
import BrokerFeatures
import Glibc
import Structures
import Transport

/// Admission of connections. Above `limits.connect_rate` they wait in the kernel; those of an
/// address that has reached a limit are closed at once.
extension BrokerLoop {
    private static var acceptsPerTurn: Int { 256 }
    /// Sockets of ended connections from which on none is accepted: fewer than the descriptors that are
    /// not for clients.
    static var mostEndedSockets: Int { 128 }
    /// Pause after a connection that could neither be accepted nor closed.
    private static var pauseMilliseconds: UInt64 { 100 }

    /// Accepts from listeners with waiting connections for a ``Stint``, after all other events of the
    /// turn, so that connected clients are served first. The kernel reports what still waits again.
    ///
    /// Accepts nothing while many sockets of ended connections are open: clients that come and go
    /// faster than sockets close would use up all descriptors.
    mutating func acceptWaiting() {
        guard acceptable != 0 else { return }
        defer { acceptable = 0 }
        guard reactor.endedSocketCount < Self.mostEndedSockets else { return }
        var stint = Stint(microseconds: Self.newcomersMicroseconds)
        var hasTime = true
        while hasTime, acceptable != 0 {
            let behindLast = acceptable & ~((2 << UInt64(lastAccepting)) &- 1)
            lastAccepting = (behindLast != 0 ? behindLast : acceptable).trailingZeroBitCount
            acceptable &= ~(1 << UInt64(lastAccepting))
            hasTime = accept(lastAccepting, &stint)
        }
    }

    /// Accepts from one listener; false when the stint is over.
    private mutating func accept(_ listener: Int, _ stint: inout Stint) -> Bool {
        for number in 0..<Self.acceptsPerTurn {
            if stint.isOver() { return false }
            guard hasToken() else { return true }
            // Only for the first connection is it known that it waits.
            guard hasRoom(onListener: listener, isAwaited: number == 0) else {
                admission.putTokenBack()
                return true
            }
            let accepted = reactor.accept(
                listener, isOneShot: beginsWithTLS(listener), isNewcomer: true)
            if case .connection(let handle) = accepted, open(handle, onListener: listener) {
                continue
            }
            admission.putTokenBack()
            switch accepted {
            case .none: return true
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
                return true
            }
        }
        return true
    }

    private mutating func logOpenFiles() {
        shard.counters.limits.add(.openFiles)
        notices.logTurnedAway(.openFiles, now: shard.now)
    }

    /// Admits a new connection; false when it was closed at a limit.
    private mutating func open(_ handle: Handle, onListener listener: Int) -> Bool {
        guard reactor.socketCount <= settings.limits.mostConnections else {
            reactor.close(handle)
            shard.counters.limits.add(.maxConnections)
            notices.logTurnedAway(.maxConnections, now: shard.now)
            return false
        }
        let peer = reactor.peerAddress(of: handle)
        // The client's address is unknown until the PROXY header arrives.
        let isProxied = isProxy(peer, ofListener: listener)
        var origin: UInt32 = 0
        if !isProxied {
            guard findBan(of: peer) == nil,
                let key = admit(peer, isSecured: contexts[listener] != nil)
            else {
                reactor.close(handle)
                return false
            }
            origin = key
        }
        shard.open(handle, listener: listener, origin: origin)
        begin(handle, onListener: listener, isProxied: isProxied)
        return true
    }

    /// Admits a connection whose PROXY header has named the client; false when a limit closed it.
    mutating func admitProxied(_ handle: Handle) -> Bool {
        let peer = reactor.peerAddress(of: handle)
        if let ban = findBan(of: peer) {
            admission.putTokenBack()
            handshakeOrder.end(handle)
            shard.lost(handle, .closedByBan(ban.id))
            return false
        }
        guard let origin = admit(peer, isSecured: reactor.isShakingHands(handle)) else {
            admission.putTokenBack()
            handshakeOrder.end(handle)
            shard.lost(handle, .addressLimit)
            return false
        }
        shard.setOrigin(origin, of: handle)
        return true
    }

    /// Counts a connection once its peer's address is known, and returns the address's key. `nil`
    /// when the address has reached a limit; the connection then closes.
    mutating func admit(_ peer: IPAddress, isSecured: Bool) -> UInt32? {
        switch admission.admit(peer, isSecured: isSecured, now: shard.now) {
        case .admitted(let key): return key
        case .refused(let limit):
            shard.counters.limits.add(limit)
            notices.logAddressTurnedAway(limit, peer, now: shard.now)
            return nil
        }
    }

    /// True when `limits.connections_per_address` applies to this connection's address.
    func sharesByAddress(_ handle: Handle) -> Bool {
        settings.limits.connectionsPerAddress.bound(
            of: settings.limits.maxConnections,
            isLoopback: reactor.peerAddress(of: handle).isLoopback) != nil
    }

    /// Logs a notice of the shard, with addresses that only the loop knows.
    mutating func log(_ notice: BrokerNotice) {
        guard case .takeOverDelayed(let report) = notice else {
            notices.log(notice, in: reactor, now: shard.now)
            return
        }
        // Reading may have stopped earlier for another reason.
        reactor.stopReading(report.waiting, awaitsEnd: true)
        let peers = [report.connected, report.waiting].map { reactor.address(of: $0) }
        shard.nameTakeOver(report, peers: peers)
        notices.logTakeOverDelayed(report, peers: peers, now: shard.now)
    }

    /// Releases the address's key of a closing connection.
    mutating func leave(_ handle: Handle, origin: UInt32) {
        if reactor.isShakingHands(handle) { admission.endHandshake(origin) }
        admission.leave(origin)
    }

    /// True when the connect rate allows another connection; otherwise all listeners pause.
    private mutating func hasToken() -> Bool {
        guard !admission.takeToken(now: shard.now) else { return true }
        shard.counters.limits.add(.connectRate)
        notices.logNewcomersWait(.connectRate, now: shard.now)
        acceptAgainAt = admission.nextToken(now: shard.now)
        updateAccepting()
        return false
    }

    /// Accepts again if there is room.
    mutating func resumeAccepting() {
        if let time = acceptAgainAt, time <= shard.now { acceptAgainAt = nil }
        if waitsForHandshakes,
            reactor.handshakeCount < settings.limits.maxHandshakes || displaceHandshake()
        {
            waitsForHandshakes = false
        }
        updateAccepting()
    }

    /// Has each listener accept unless there is a reason to pause.
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
