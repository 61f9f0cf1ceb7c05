import BrokerAPI
import Structures

/// A drain: all connections end at a rate, as by a failure of the network, so that sessions stay and
/// wills are published [MQTT-3.1.2-8]. Its caller lets nobody connect meanwhile; a CONNECT of a
/// connection that was there before gets code 3.
extension Shard {
    /// Connections that one turn looks at.
    private static var searchedPerTurn: UInt32 { 1_024 }

    /// True until ``endDrain()``, also when no connection is left.
    public var isDraining: Bool { drain.isActive }

    public var drainStatus: DrainStatus { drain.status(connections: connections.count) }

    /// Begins a drain, or changes its rate. Clients of MQTT 5.0 are told the reference to another broker;
    /// `nil` for none.
    public mutating func startDrain(perSecond: Int, serverReference: String? = nil) {
        drain.start(
            perSecond: perSecond, serverReference: serverReference, now: context.now,
            wallClockMs: context.wallClockMs)
    }

    public mutating func endDrain() { drain.end() }

    /// Closes the connections that are due. True once when none is left.
    public mutating func continueDrain() -> Bool {
        guard drain.isActive else { return false }
        guard connections.count > 0 else { return drain.finish() }
        let due = drain.due(at: context.now)
        guard due > 0 else { return false }
        var (index, closed, left) = (drain.place, 0, Self.searchedPerTurn)
        while left > 0, closed < due, index < connections.endIndex {
            if let handle = connections.current(at: index), connections.isLive(handle) {
                end(handle, .draining)
                closed += 1
            }
            index += 1
            left -= 1
        }
        drain.note(closed: closed, next: index < connections.endIndex ? index : 0)
        return false
    }
}
