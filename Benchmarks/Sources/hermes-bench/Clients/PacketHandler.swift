import MQTTCodec

/// A scenario's reactions to events of its connections.
protocol PacketHandler: ~Copyable {
    /// A whole packet; its ranges are those of `bytes`.
    mutating func receive(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure)

    /// A connection ended that the scenario has not ended; its number is free again.
    mutating func closed(
        _ client: UInt32, _ reason: String, _ sockets: inout ClientSockets
    ) throws(BenchFailure)

    /// All events of the turn have been handled; output appended now is sent with the rest.
    mutating func endTurn(_ sockets: inout ClientSockets) throws(BenchFailure)
}
