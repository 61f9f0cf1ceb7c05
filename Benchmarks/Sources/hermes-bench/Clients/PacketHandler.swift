import MQTTCodec

/// What a scenario does with the events of its connections.
protocol PacketHandler: ~Copyable {
    /// A whole packet; its ranges are those of `bytes`.
    mutating func receive(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure)

    /// A connection ended that the scenario did not end itself; its number is free again.
    mutating func closed(
        _ client: UInt32, _ reason: String, _ sockets: inout ClientSockets
    ) throws(BenchFailure)

    /// All events of the turn have been handled; what is appended now is sent with the rest.
    mutating func endTurn(_ sockets: inout ClientSockets) throws(BenchFailure)
}
