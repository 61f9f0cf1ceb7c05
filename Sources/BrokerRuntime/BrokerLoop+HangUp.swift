import BrokerCore
import BrokerFeatures
import Structures
import Transport

/// Sockets that fail while packets of their clients are unread: what had arrived still counts, most
/// of all a DISCONNECT, which ends the connection without its will [MQTT-3.14.4-3].
///
/// The connection ends once its input has been handled. While the broker holds the input back, such
/// as for a disk that hangs, the connection keeps its descriptor, at most a read of 64 KiB beyond its
/// kept input, and what the kernel holds; it counts against all limits on connections.
extension BrokerLoop {
    /// A connection whose socket has failed, and the reason for its end.
    struct FailedSocket: BitwiseCopyable {
        let connection: Handle
        let reason: CloseReason
    }

    /// Reads of one failed socket per turn.
    private static var readsPerTurn: Int { 4 }
    /// With more kept input, a failed socket is not read before its input is released.
    private static var keptBytes: Int { 64 * 1_024 }

    /// Ends a connection whose socket takes no more output, after the input that had arrived.
    mutating func fail(_ handle: Handle, _ reason: CloseReason) {
        guard shard.isActive(handle) else {
            end(handle, reason)
            return
        }
        shard.discardUnsent(handle)
        guard failure(of: handle) == nil else { return }
        failures[handle.index] = FailedSocket(connection: handle, reason: reason)
        var reads = 0
        while reads < Self.readsPerTurn, shard.isActive(handle), !shard.holdsInput(handle) {
            read(handle)
            reads += 1
        }
        if shard.holdsInput(handle) { holdFailed(handle) }
        // Else the next turns read on, since the kernel reports the failure in each.
    }

    /// Handles the hang-up of a connection whose input is held back.
    mutating func hangUp(_ handle: Handle) {
        guard shard.isActive(handle) else {
            // Without CONNACK it has neither will nor packets that count.
            shard.lost(handle, .peerClosed)
            return
        }
        if failure(of: handle) == nil {
            failures[handle.index] = FailedSocket(connection: handle, reason: .peerClosed)
            shard.discardUnsent(handle)
        }
        holdFailed(handle)
    }

    /// Looks for a DISCONNECT in the input, and lets the connection wait for its release.
    private mutating func holdFailed(_ handle: Handle) {
        guard shard.holdsInput(handle), reactor.silence(handle) else { return }
        if reactor.keptInput(handle).count < Self.keptBytes,
            case .bytes(let bytes) = reactor.receive(handle)
        {
            reactor.keep(handle, bytes, from: 0, isHeldBack: true)
        }
        shard.noteArrived(handle, reactor.keptInput(handle))
    }

    /// The reason for which a connection with a failed socket ends; `nil` for a sound socket.
    func failure(of handle: Handle) -> CloseReason? {
        guard !failures.isEmpty, let failed = failures[handle.index], failed.connection == handle
        else { return nil }
        return failed.reason
    }
}
