import MQTTCodec

/// The end of a connection that the client did not want to end.
package enum DropReason: Hashable, Sendable {
    /// The broker or something between closed the connection.
    case closedByPeer
    /// The broker, or something between, has reset the connection (RST).
    case resetByPeer
    /// The network failed, or the connection could not be opened.
    case networkFailure
    /// The host's name has no address.
    case nameNotFound
    /// Nothing listens at the address.
    case connectionRefused
    /// TLS was not agreed upon, and why.
    case tlsFailed(String)
    /// WebSocket was not granted, or the server broke a rule of it, and which.
    case webSocketFailed(String)
    /// The proxy opened no way to the broker, and why.
    case proxyFailed(String)
    /// A write found the connection gone (EPIPE, ENOTCONN, connection lost).
    case writeFailed
    /// The broker is not the one that TLS was to prove, and why.
    case untrusted(String)
    case openTimeout
    case connackTimeout
    /// CONNACK 3.
    case serverUnavailable
    /// No PINGRESP came in time.
    case silent
    /// No PINGRESP came within the 3 s that follow a change of the network.
    case probeFailed
    /// SUBACK or UNSUBACK did not come in time.
    case subscriptionTimeout
    /// A packet began and did not end in time.
    case unfinishedPacket
    case malformed(MalformedPacket)
    case violation(BrokerViolation)

    /// The broker, or something between, has ended the connection; a write may find that first.
    var isEndByPeer: Bool {
        self == .closedByPeer || self == .resetByPeer || self == .writeFailed
    }
}

/// A rule of MQTT that the broker has broken with a well-formed packet.
package enum BrokerViolation: Hashable, Sendable {
    /// The first packet was not CONNACK, or a second CONNACK came.
    case unexpectedConnack
    case packetBeforeConnack(PacketType)
    /// A packet that only clients send.
    case clientPacket(PacketType)
    /// PUBACK, PUBREC or PUBCOMP for nothing that is under way.
    case unexpectedAcknowledgement(PacketType, PacketIdentifier)
    /// SUBACK or UNSUBACK for nothing that was asked, or with another number of codes.
    case unexpectedAnswer(PacketType, PacketIdentifier)
    /// A message came with a packet identifier that is in use for another.
    case identifierInUse(PacketIdentifier)
    /// More messages than the client's limit are without an acknowledgement.
    case tooManyUnacknowledged
}
