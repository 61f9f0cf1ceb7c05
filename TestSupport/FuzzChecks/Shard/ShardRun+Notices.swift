import BrokerCore
import BrokerFeatures
import HermesTesting
import MQTTCodec
import Structures

/// Compares the shard's notices with the view of its peers.
extension ShardRun {
    /// The timer wheel's step makes timers late.
    private static let lateMilliseconds: UInt64 = 300

    func note(_ notice: BrokerNotice) throws(CheckFailure) {
        switch notice {
        case .opened(let handle, _, _, _, _): connections[handle]?.wasOpened = true
        case .closed(let handle, _, _, let reason, _):
            guard let peer = connections.removeValue(forKey: handle) else {
                throw CheckFailure("\(handle) ended twice, or never began")
            }
            trace?("    \(handle.index) ends: \(reason.name)")
            try noteEnd(peer, reason)
        case .dropping(let clientID, _, _, _): sessions[clientID]?.hasDrops = true
        default: return
        }
    }

    private func noteEnd(_ peer: Peer, _ reason: CloseReason) throws(CheckFailure) {
        switch reason {
        case .keepAlive:
            // Not before one and a half times the keep alive [MQTT-3.1.2-24]; time in which the
            // broker does not read does not count.
            let asked = peer.connect?.keepAlive ?? 0
            let silence = harness.now.milliseconds(since: peer.heardAt)
            try CheckFailure.unless(
                keepAliveMilliseconds(peer).map { silence * 2 >= $0 * 3 } ?? false,
                "closed after \(silence) ms of silence with a keep alive of \(asked) s")
        case .connectTimeout:
            try CheckFailure.unless(
                peer.connect == nil
                    && harness.now.milliseconds(since: peer.openedAt)
                        >= setup.settings.connectTimeout.wholeMilliseconds,
                "closed for want of a CONNECT too early")
        case .protocolViolation(.wrongAcknowledgement(let type, let awaited)):
            try CheckFailure.unless(
                peer.acknowledgesFreely,
                "closed for \(type) where \(awaited) is due, and it answered what it got")
        case .protocolViolation(let violation):
            try CheckFailure.unless(
                peer.isViolating || !peer.sending.isEmpty,
                "closed without a cause: \(violation.explanation)")
        default: break
        }
        try noteWill(peer, reason)
        if let connect = peer.connect, peer.stage == .awaitingConnack {
            // The session may or may not have begun and processed early packets.
            sessions[connect.clientID]?.mayBeGone = true
        }
        guard let session = peer.session, session.holder == peer.handle else { return }
        session.holder = nil
        session.awaySince = harness.now
        if !session.isPersistent, sessions[session.clientID] === session {
            sessions[session.clientID] = nil
        }
    }

    /// A will is published at the end of its connection [MQTT-3.1.2-8], except after DISCONNECT
    /// [MQTT-3.14.4-3] or without an accepted CONNECT.
    private func noteWill(_ peer: Peer, _ reason: CloseReason) throws(CheckFailure) {
        guard let serial = peer.will else { return }
        publications[serial].step = step
        guard peer.wasOpened, reason != .disconnect, reason != .shutdown else {
            publications[serial].forbidden = "its connection ended with \(reason.name)"
            try CheckFailure.unless(
                !publications[serial].wasDelivered,
                "the will \(serial) was published after \(reason.name)")
            return
        }
        let levels = publications[serial].topic.count { $0 == 0x2F } + 1
        if levels <= setup.settings.maxTopicLevels { own(serial) }
    }

    /// `nil` without keep alive.
    private func keepAliveMilliseconds(_ peer: Peer) -> UInt64? {
        guard let connect = peer.connect else { return nil }
        let asked = UInt64(connect.keepAlive) * 1_000
        guard let limit = setup.settings.maxKeepAlive?.wholeMilliseconds else {
            return asked == 0 ? nil : asked
        }
        return asked == 0 ? limit : min(asked, limit)
    }

    func noteReplies() throws(CheckFailure) {
        for reply in replies.take() {
            guard let counts = reply.counts else { continue }
            let most = counts.matched
            try CheckFailure.unless(
                counts.online >= 0 && counts.online <= most && counts.queued >= 0
                    && counts.queued <= most && counts.dropped >= 0 && counts.dropped <= most,
                "the operator's publish was counted as \(counts)")
            guard let serial = reply.serial, !publications[serial].isForged else { continue }
            try CheckFailure.unless(
                store.isStored(serial: serial), "the operator was answered before the commit")
            own(serial)
        }
    }

    // MARK: After each turn

    /// Notes sessions that have all retained messages: SUBACK was sent and no walk is running.
    func noteRetainedServed() {
        let asking = sessions.values.filter { $0.retainedServedAt == nil }
        guard !asking.isEmpty, harness.shard.figures.retainedWalks == 0 else { return }
        for session in asking {
            let holder = session.holder.flatMap { connections[$0] }
            if holder?.subscribes.isEmpty ?? true { session.retainedServedAt = step }
        }
    }

    /// Connections that had to end are closed.
    func checkConnections() throws(CheckFailure) {
        let isTurnDue = harness.shard.nextDeadline.map { $0 <= harness.now } ?? false
        for peer in connections.values {
            guard !peer.isGone, !harness.shard.holdsInput(peer.handle) else { continue }
            // Held-back input is processed in the next turn.
            if isTurnDue, !peer.kept.isEmpty { continue }
            try CheckFailure.unless(
                !peer.isViolating, "\(peer.handle) broke the protocol and stays [MQTT-4.8.0-1]")
            try CheckFailure.unless(
                !peer.hasDisconnected, "\(peer.handle) stays after DISCONNECT")
            let deadline = setup.settings.connectTimeout.wholeMilliseconds
            let age = harness.now.milliseconds(since: peer.openedAt)
            try CheckFailure.unless(
                peer.connect != nil || age < deadline + Self.lateMilliseconds,
                "\(peer.handle) sent no CONNECT for \(age) ms and stays")
            guard peer.stage == .accepted, let keepAlive = keepAliveMilliseconds(peer) else {
                continue
            }
            let silence = harness.now.milliseconds(since: peer.heardAt)
            try CheckFailure.unless(
                silence < keepAlive * 3 / 2 + Self.lateMilliseconds,
                "\(peer.handle) is silent for \(silence) ms and stays [MQTT-3.1.2-24]")
        }
    }

    /// The totals of the status equal the sums over all clients.
    func checkFigures() throws(CheckFailure) {
        let status = harness.status
        let clients = harness.clients()
        func expect(_ name: String, _ total: Int, _ sum: Int) throws(CheckFailure) {
            try CheckFailure.unless(
                total == sum && total >= 0, "status counts \(total) \(name), its parts \(sum)")
        }
        try expect("sessions", status.sessions, clients.count)
        try expect(
            "persistent sessions", status.persistentSessions, clients.count { !$0.cleanSession })
        try expect(
            "subscriptions", status.subscriptions, clients.reduce(0) { $0 + $1.subscriptions })
        try expect("messages queued", status.queued, clients.reduce(0) { $0 + $1.queued })
        try expect("bytes queued", status.queuedBytes, clients.reduce(0) { $0 + $1.queuedBytes })
        try expect("messages in flight", status.inFlight, clients.reduce(0) { $0 + $1.inFlight })
        try expect(
            "connections", status.connections + status.connectionsPending, connections.count)
        let connected = clients.count { $0.connected }
        try CheckFailure.unless(
            status.connections >= 0 && status.connectionsPending >= 0
                && connected >= status.connections && connected <= connections.count,
            "\(connected) clients are connected, \(status.connections) connections are open")
        for client in clients {
            try CheckFailure.unless(
                client.inFlight >= 0
                    && client.queued >= 0 && client.queuedBytes >= 0,
                "\(client.clientID) has \(client.inFlight) messages in flight, "
                    + "\(client.queued) queued in \(client.queuedBytes) bytes")
        }
    }
}
