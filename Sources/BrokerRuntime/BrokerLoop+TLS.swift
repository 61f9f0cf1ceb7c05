import BrokerAPI
import BrokerCore
import BrokerFeatures
import Glibc
import Structures
import TLS
import Threads
import Transport

/// TLS handshakes: their steps run on other threads, and their number is bounded.
///
/// At the bound, a new connection replaces the handshake that has waited longest for its client, if
/// that was too long, so that idle clients block nobody; otherwise it waits in the kernel. A
/// handshake with a running step is never replaced: it holds socket and worker until the step ends.
extension BrokerLoop {
    /// True when a listener may accept another connection now. An idle handshake is replaced only
    /// if a connection `isAwaited`, so is known to wait.
    mutating func hasRoom(onListener listener: Int, isAwaited: Bool) -> Bool {
        guard contexts[listener] != nil,
            reactor.handshakeCount >= settings.limits.maxHandshakes
        else { return true }
        guard isAwaited else { return false }
        shard.counters.limits.add(.maxHandshakes)
        notices.logHandshakesWait(now: shard.now)
        if displaceHandshake() { return true }
        waitsForHandshakes = true
        updateAccepting()
        return false
    }

    /// Ends the handshake that has waited longest for its client, if that was too long.
    mutating func displaceHandshake() -> Bool {
        guard let oldest = handshakeOrder.oldest(in: reactor), oldest.endsAt <= shard.now else {
            return false
        }
        fail(
            oldest.connection,
            TLSFailure(.displaced, "it took too long, and a newer one needed its place"))
        closeEnded()
        return !reactor.isShakingHands(oldest.connection)
    }

    /// Time at which the next handshake may be replaced; `nil` when no connection waits.
    var handshakeDeadline: MonotonicTime? {
        mutating get {
            guard waitsForHandshakes else { return nil }
            return handshakeOrder.oldest(in: reactor)?.endsAt
        }
    }

    mutating func submitHandshakes() {
        guard let handshakes else { return }
        for step in reactor.takeHandshakeSteps() {
            handshakeOrder.beginStep(step.connection, at: shard.now)
            handshakes.submit(step)
        }
    }

    /// Takes the result of a handshake step from a worker.
    mutating func finishStep(_ handle: Handle, _ outcome: TLSHandshake.Outcome) {
        switch reactor.finishStep(handle, outcome) {
        case .stale: return
        case .underWay: handshakeOrder.awaitClient(handle, at: shard.now)
        case .established(let peer):
            handshakeOrder.end(handle)
            admission.endHandshake(shard.origin(of: handle))
            guard admits(peer, handle) else {
                fail(handle, TLSFailure(.certificate, "certificate revoked during the handshake"))
                return
            }
            handshakeCounters.succeeded(isResumed: peer.isResumed, peer.version)
            if let userName = peer.userName { shard.identify(handle, userName) }
            if reactor.holdsUnopenedInput(handle) { read(handle) }
        case .failed(let failure): fail(handle, failure)
        }
    }

    private mutating func fail(_ handle: Handle, _ failure: TLSFailure) {
        // So that it is ended once only.
        handshakeOrder.end(handle)
        handshakeCounters.failed(failure.reason)
        notices.logHandshakeFailed(failure, handle, in: reactor, now: shard.now)
        shard.lost(handle, .tlsHandshake)
    }

    static func handshakeWorkers(
        _ settings: BrokerSettings, _ mailbox: Mailbox<ShardMessage>
    ) throws(ThreadFailure) -> HandshakeWorkers? {
        guard settings.listeners.contains(where: { $0.tls != nil }) else { return nil }
        return try HandshakeWorkers(count: HandshakeWorkers.usualCount) { handle, outcome in
            // The shard's next turn makes room.
            while mailbox.post(.handshake(handle, outcome), isUrgent: true) == .full {
                usleep(1_000)
            }
        }
    }

    /// Takes certificates and rules for new handshakes; a plain listener stays plain. Closes
    /// connections whose client certificates are no longer accepted.
    mutating func take(_ contexts: [TLSContext?]) {
        for listener in self.contexts.indices
        where listener < contexts.count && self.contexts[listener] != nil {
            self.contexts[listener] = contexts[listener] ?? self.contexts[listener]
        }
        for handle in verifiedClients.refused(by: self.contexts) {
            shard.lost(handle, .certificateRevoked)
        }
    }

    /// True when the current rules accept a client, whose handshake may have begun under earlier
    /// ones. Records its certificates for later reloads.
    private mutating func admits(_ peer: TLSPeer, _ handle: Handle) -> Bool {
        guard let client = peer.client else { return true }
        let listener = shard.listener(of: handle)
        guard let context = contexts[listener], context.admits(client) else { return false }
        verifiedClients.add(handle, client, listener: listener)
        return true
    }

    mutating func addTLS(to figures: inout BrokerFigures) {
        handshakeCounters.add(to: &figures)
        figures.tlsConnections = reactor.securedCount
        figures.tlsHandshakesUnderWay = reactor.handshakeCount
        for (listener, context) in contexts.enumerated() {
            for certificate in context?.certificates ?? [] {
                figures.certificates.append(
                    expiring(certificate.file, certificate.expiresAt, listener))
            }
            if let end = context?.revocationsEndAt, let file = context?.settings.crlFile {
                figures.revocationLists.append(expiring(file, end, listener))
            }
        }
    }

    /// `end` in seconds since 1970.
    private func expiring(
        _ file: String, _ end: Int64, _ listener: Int
    ) -> BrokerFigures.ExpiringFile {
        let now = Double(shard.wallClockMs) / 1_000
        return BrokerFigures.ExpiringFile(
            listener: listener, file: file, daysLeft: (Double(end) - now) / 86_400, expiresAt: end)
    }
}
