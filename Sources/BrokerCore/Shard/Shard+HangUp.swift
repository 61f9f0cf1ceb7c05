import MQTTCodec
import Structures

/// What sockets tell: that output has left, or that they have failed although packets of their
/// clients still wait.
extension Shard {
    /// True from CONNACK until the connection ends: the client's packets count.
    public func isActive(_ handle: Handle) -> Bool {
        connections.isCurrent(handle) && connections[handle].machine.isActive
    }

    /// Drops unsent output, which the socket takes no more. A pause for its sake ends.
    public mutating func discardUnsent(_ handle: Handle) {
        guard isActive(handle) else { return }
        connections[handle].outlet.removeAll(in: pool)
        resumeIfPossible(handle)
    }

    /// Discards the will of a client that has hung up if a DISCONNECT is among its packets that
    /// are held back [MQTT-3.14.4-3], so that no earlier end of the connection publishes it.
    public mutating func noteArrived(_ handle: Handle, _ bytes: UnsafeRawBufferPointer) {
        guard isActive(handle), let will = connections[handle].will,
            connections[handle].outlet.speaks5
                ? endsWithDisconnect5(bytes) : endsWithDisconnect(bytes)
        else { return }
        will.release(in: pool)
        connections[handle].will = nil
        commits.records.willRemoved(session: sessions[connections[handle].session].number)
    }

    /// True when a DISCONNECT follows on valid packets only.
    private func endsWithDisconnect(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var offset = 0
        while case .frame(let frame)? = try? PacketDecoder.frame(
            bytes.bytes, at: offset, maximumSize: context.limits.maxPacketBytes),
            let packet = try? PacketDecoder.decode(frame, bytes.bytes)
        {
            if case .disconnect = packet { return true }
            offset = frame.packet.end
        }
        return false
    }

    /// The same of MQTT 5.0, where only code 0x00 discards the will [MQTT-3.1.2-10].
    private func endsWithDisconnect5(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var offset = 0
        while case .frame(let frame)? = try? PacketDecoder5.frame(
            bytes.bytes, at: offset, from: .client, maximumSize: context.limits.maxPacketBytes),
            let packet = try? PacketDecoder5.decode(frame, bytes.bytes, from: .client)
        {
            if case .disconnect(let disconnect) = packet { return disconnect.code == .success }
            offset = frame.packet.end
        }
        return false
    }

    /// Bytes of one connection's output that are sent at once.
    public static var mostSentAtOnce: Int { Outlet.mostSentAtOnce }

    /// Reports that the socket has taken a part of the output and has room for more: the connection
    /// goes to the end of the line.
    public mutating func sentPart(_ handle: Handle) {
        if connections.isCurrent(handle) { connections.markRest(handle) }
    }

    /// Reports that the socket has room again. True when its output is so much that it stands in line
    /// for it; otherwise the caller sends it.
    public mutating func hasRoom(_ handle: Handle) -> Bool {
        guard connections.isCurrent(handle), !connections[handle].outlet.isLittle else {
            return false
        }
        connections.markRest(handle)
        return true
    }

    /// Reports that the socket has taken all output, so that waiting messages can be sent.
    public mutating func drained(_ handle: Handle) {
        guard connections.isCurrent(handle) else { return }
        connections[handle].outlet.noteDrained()
        resumeIfPossible(handle)
        let session = connections[handle].session
        guard session != noIndex else { return }
        if connections[handle].machine.setThrottled(false) { pump(session) }
        resumeRetained(session)
    }
}
