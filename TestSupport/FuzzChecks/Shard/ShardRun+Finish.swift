import BrokerCore
import BrokerFeatures
import HermesTesting
import MQTTCodec
import Structures

/// The end of a program: clients receive what is due, and all memory is freed.
extension ShardRun {
    /// More turns than any program needs to become idle.
    private static let mostTurns = 2_000

    func finish() throws(CheckFailure) {
        trace?("The end.")
        step += 1
        if !isShutDown { try collectOwed() }
        try removeEverything()
    }

    // MARK: What is owed

    /// Clients with due messages reconnect and receive them.
    private func collectOwed() throws(CheckFailure) {
        try settle()
        for index in slots.indices { try leave(index) }
        for clientID in sessions.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            guard let session = sessions[clientID], session.isPersistent,
                !session.mayBeGone, !mayHaveExpired(session)
            else { continue }
            trace?("\(text(clientID)) is owed \(session.owed.sorted())")
            step += 1
            let peer = openIfFree(0)
            var connect = PacketContent.Connect(clientID: "")
            connect.clientID = clientID
            connect.cleanSession = false
            connect.userName = session.userName
            try send(0, .connect(connect))
            try settle()
            try CheckFailure.unless(
                peer.stage == .accepted,
                "\(text(clientID)) was not let in again")
            try CheckFailure.unless(
                peer.session === session, "\(text(clientID)) got another session")
            try CheckFailure.unless(
                session.owed.isEmpty || session.isSloppy || session.hasDrops,
                "\(text(clientID)) never got the messages \(session.owed.sorted())")
            try leave(0)
        }
    }

    private func leave(_ slot: Int) throws(CheckFailure) {
        guard let peer = slots[slot] else { return }
        harness.lose(peer)
        slots[slot] = nil
        try turn()
        try settle()
    }

    /// Runs turns until the shard is idle: commits complete, peers read and acknowledge.
    private func settle() throws(CheckFailure) {
        for _ in 0..<Self.mostTurns {
            harness.store.completeAll()
            harness.store.holdsReads = false
            harness.store.isAccepting = true
            while !harness.authentications.isEmpty { harness.decide(0, nil) }
            for (index, peer) in slots.enumerated() {
                guard let peer, !peer.isClosed else { continue }
                peer.fragmentSize = nil
                peer.readLimit = nil
                harness.write(peer)
                try respond(index, peer.answers.count, fromNewest: false)
            }
            try turn()
            if isAtRest { return }
        }
        throw CheckFailure("the shard does not come to rest")
    }

    private var isAtRest: Bool {
        guard harness.store.pending.isEmpty, harness.authentications.isEmpty else { return false }
        for case .some(let peer) in slots where !peer.answers.isEmpty { return false }
        guard let next = harness.shard.nextDeadline else { return true }
        return next > harness.now
    }

    // MARK: What is given back

    private func removeEverything() throws(CheckFailure) {
        for peer in Array(connections.values) { harness.lose(peer) }
        for index in slots.indices { slots[index] = nil }
        try settle()
        let expiry = setup.settings.sessionExpiry.wholeMilliseconds
        harness.advance(milliseconds: expiry + 60_000)
        try settle()
        harness.sweep(sortedTopics)
        let status = harness.status
        try CheckFailure.unless(
            status.sessions == 0 && status.retained == 0 && status.subscriptions == 0
                && status.queued == 0 && status.inFlight == 0,
            "\(status.sessions) sessions, \(status.retained) retained messages, "
                + "\(status.subscriptions) subscriptions, \(status.queued) queued and "
                + "\(status.inFlight) messages in flight stay for ever")
        try CheckFailure.unless(replies.open == 0, "\(replies.open) publishes were not answered")
        // The broker's own topics stay once a client has subscribed to them.
        guard setup.systemTopicInterval == .zero else { return }
        let inUse = harness.shard.pool.bytesInUse
        let expected = bytesOfUnusedShard()
        try CheckFailure.unless(
            inUse == expected, "\(inUse) bytes of the pool stay in use, \(expected) when unused")
    }

    private var sortedTopics: [[UInt8]] { topics.sorted { $0.lexicographicallyPrecedes($1) } }

    /// Memory of a new shard after the same sweep: caches keep the names of long topics.
    private func bytesOfUnusedShard() -> Int {
        let unused = ShardHarness(setup, seed: Self.seed)
        unused.sweep(sortedTopics)
        let pool = unused.shard.pool
        defer { pool.destroy() }
        return pool.bytesInUse
    }
}
