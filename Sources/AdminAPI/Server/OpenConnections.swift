import Addresses
import NIOCore
import OperatorLog
import Synchronization

/// The open connections of one listener: gives each its place, and closes those that make room.
///
/// Only the listener's event loop calls it.
final class OpenConnections: Sendable {
    private struct State {
        var roster: ConnectionRoster<ObjectIdentifier>
        var channels: [ObjectIdentifier: any Channel] = [:]
    }

    private let state: Mutex<State>
    private let limit: Int
    /// True for the Unix socket: the mode of its file lets nobody in but callers.
    private let trustsEveryone: Bool
    private let counters: AdminCounters
    private let log: FloodLog

    init(
        _ places: ConnectionPlaces, trustsEveryone: Bool,
        counters: AdminCounters, log: FloodLog
    ) {
        state = Mutex(State(roster: ConnectionRoster(places)))
        limit = places.all
        self.trustsEveryone = trustsEveryone
        self.counters = counters
        self.log = log
    }

    /// Gives an accepted connection its place, until it closes.
    ///
    /// - Returns: False when there is none.
    func admit(_ channel: any Channel, from peer: SocketAddress?) -> Bool {
        let id = ObjectIdentifier(channel)
        let isAdmitted = carryOut { state in
            let outcome = state.roster.admit(id, from: IPAddress(peer).prefix)
            guard case .admit = outcome else { return outcome }
            state.channels[id] = channel
            if trustsEveryone {
                _ = state.roster.trust(id)
                state.roster.setBusy(id, false)
            }
            return outcome
        }
        guard isAdmitted else { return false }
        channel.closeFuture.whenComplete { [self] _ in
            state.withLock { state in
                state.roster.remove(id)
                state.channels[id] = nil
            }
        }
        return true
    }

    /// A request on this connection has shown a good token.
    ///
    /// - Throws: ``Problem`` when callers have as many connections with requests under way as they
    ///   may have.
    func trust(_ channel: any Channel) throws(Problem) {
        let isAdmitted = carryOut { $0.roster.trust(ObjectIdentifier(channel)) }
        if isAdmitted { return }
        counters.countConnectionRefused()
        throw Problem.tooManyConnections("Too many connections have requests under way.")
    }

    /// A request on this connection has shown no good token.
    func distrust(_ channel: any Channel) {
        state.withLock { $0.roster.distrust(ObjectIdentifier(channel)) }
    }

    /// Whether a request on this connection is under way.
    func setBusy(_ channel: any Channel, _ isBusy: Bool) {
        state.withLock { $0.roster.setBusy(ObjectIdentifier(channel), isBusy) }
    }

    /// A request on this connection has come before the one ahead of it was answered.
    func notePipelining(_ channel: any Channel) {
        state.withLock { $0.roster.notePipelining(ObjectIdentifier(channel)) }
    }

    /// Whether the answers on this connection are to be delayed, for the sake of others.
    func mustWait(_ channel: any Channel) -> Bool {
        state.withLock { $0.roster.mustWait(ObjectIdentifier(channel)) }
    }

    /// Does what the roster decides, and closes the connection that makes room.
    ///
    /// - Returns: False when it refuses.
    private func carryOut(
        _ decide: (inout State) -> ConnectionRoster<ObjectIdentifier>.OnRequest
    ) -> Bool {
        // A channel that closes comes back here, so the lock is free by then.
        let (isAdmitted, displaced): (Bool, (any Channel)?) = state.withLock { state in
            switch decide(&state) {
            case .admit(let id): (true, id.flatMap { state.channels.removeValue(forKey: $0) })
            case .refuse: (false, nil)
            }
        }
        if let displaced { displace(displaced) }
        return isAdmitted
    }

    private func displace(_ channel: any Channel) {
        counters.countConnectionDisplaced()
        log.write(
            .warning, "Admin connection closed to make room",
            [
                LogKeys.adminLimit: "\(limit)",
                LogKeys.adminPeer: "\(IPAddress.text(channel.remoteAddress))",
            ])
        TLSLayer.sever(channel)
    }
}
