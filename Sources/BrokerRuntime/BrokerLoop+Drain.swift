import BrokerAPI
import BrokerCore
import BrokerFeatures
import Structures
import SystemFiles
import Transport

/// Drains the broker before maintenance: its listeners refuse, and the shard closes connections at a
/// rate.
///
/// The kernel refuses new clients, as where nothing listens: that costs them one round trip, and
/// whoever has a further address, a client or a load balancer in front, tries it at once. Accepted and
/// then closed, or answered with code 3, they would count as connected first, and TLS would cost both
/// sides a handshake. The sockets stay bound with their options, and listen again at the end.
extension BrokerLoop {
    /// Begins a drain, or changes its rate and where its clients are sent. Fails during a shutdown.
    mutating func startDrain(
        perSecond: Int, serverReference: String?
    ) -> BrokerAnswer<DrainStatus> {
        guard drainDeadline == nil else { return .failure(.stopping) }
        if !shard.isDraining {
            reactor.refuseConnections()
            acceptable = 0
            waitsForHandshakes = false
            drainSign.set(true)
        }
        shard.startDrain(perSecond: perSecond, serverReference: serverReference)
        let status = shard.drainStatus
        notices.logDrainStarted(perSecond: perSecond, connections: status.connections)
        continueDrain()
        return .success(shard.drainStatus)
    }

    /// Lets clients connect again.
    mutating func endDrain() -> BrokerAnswer<DrainEnd> {
        guard drainDeadline == nil else { return .failure(.stopping) }
        guard shard.isDraining else {
            return .success(.ended(shard.drainStatus))
        }
        do throws(SystemError) {
            try reactor.listenAgain()
        } catch {
            notices.logDrainGoesOn(error)
            return .success(.cannotListen("\(error)"))
        }
        // They report waiting connections again, and pause where there is a reason to.
        isAccepting = isAccepting.map { _ in true }
        updateAccepting()
        var status = shard.drainStatus
        notices.logDrainEnded(closed: status.closed ?? 0)
        shard.endDrain()
        drainSign.set(false)
        status.state = .off
        status.secondsLeft = nil
        return .success(.ended(status))
    }

    /// Closes the connections that are due.
    mutating func continueDrain() {
        if shard.continueDrain() { notices.logDrained(closed: shard.drainStatus.closed ?? 0) }
    }
}
