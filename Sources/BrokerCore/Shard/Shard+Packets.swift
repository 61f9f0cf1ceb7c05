import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Handles a connection's packets.
extension Shard {
    /// First byte of a TLS handshake record (RFC 8446, section 5.1). No CONNECT begins with it,
    /// since its reserved bits are 0 [MQTT-2.2.2-1].
    private static var tlsHandshakeRecord: UInt8 { 22 }

    /// Handles all complete packets in `bytes` and returns the number of bytes consumed. The caller
    /// offers the rest again, with more input or when the turn resumes the connection.
    ///
    /// `token` came before CONNECT, in the request for WebSocket, and stands for the password of a
    /// CONNECT that has none; empty when there is none.
    public mutating func receive(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer,
        token: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) -> Int {
        guard connections.isCurrent(handle) else { return bytes.count }
        context.budget.beginShare()
        connections.beginSource()
        var offset = 0
        while offset < bytes.count {
            guard !connections[handle].machine.isEnding else { return bytes.count }
            guard !connections[handle].machine.holdsInput, !connections[handle].intake.isPaused
            else { break }
            guard !connections[handle].outlet.speaks5 else {
                return receive5(handle, bytes, from: offset)
            }
            let isFirst = connections[handle].machine.isAwaitingConnect
            let limit =
                isFirst ? context.limits.maxConnectPacketBytes : context.limits.maxPacketBytes
            do throws(MalformedPacket) {
                switch try PacketDecoder.frame(bytes.bytes, at: offset, maximumSize: limit) {
                case .incomplete:
                    // Reject a first packet other than CONNECT by its first byte.
                    if isFirst, bytes[offset] >> 4 != PacketType.connect.rawValue {
                        endStranger(handle, .firstPacketNotConnect, bytes, offset)
                        return bytes.count
                    }
                    if commits.holdsMessages { awaitStoreEarly(handle, bytes, offset) }
                    return offset
                case .frame(let frame):
                    guard context.budget.admits(frame.type) else {
                        connections.awaitTurn(handle)
                        return offset
                    }
                    if commits.holdsMessages, awaitsStore(handle, frame, bytes) { return offset }
                    if filterRequests.isEmpty || !filterRequests.contains(handle) {
                        context.counters.packetsReceived += 1
                        try process(handle, frame, bytes, token)
                    } else {
                        continueFilters(handle, frame.packet, bytes)
                    }
                    context.budget.spend(WorkBudget.packet)
                    if rights.hasWork { chargeRights() }
                    if connections[handle].intake.awaitsTurn { return offset }
                    offset = frame.packet.end
                    // The keep alive counts complete packets, not bytes [MQTT-3.1.2-24].
                    connections[handle].keepAlive.heard(at: context.now)
                }
            } catch {
                endMalformed(handle, error, bytes, offset)
                return bytes.count
            }
        }
        return offset
    }

    private mutating func process(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer,
        _ token: UnsafeRawBufferPointer
    ) throws(MalformedPacket) {
        if frame.type == .connect {
            // A second CONNECT is a violation even if it is malformed.
            try receiveConnect(handle, frame, bytes, token)
            return
        }
        switch connections[handle].machine.receive(frame.type) {
        case .process: break
        case .ignore: return
        case .close(.firstPacketNotConnect):
            endStranger(handle, .firstPacketNotConnect, bytes, frame.packet.start)
            return
        case .close(let violation):
            end(handle, .protocolViolation(violation))
            return
        }
        // A malformed DISCONNECT is a violation, so the will is published [MQTT-3.14.1-1].
        switch try PacketDecoder.decode(frame, bytes.bytes) {
        case .publish(let publish):
            receivePublish(handle, IncomingPublish(publish, frame.packet, bytes))
        case .puback(let identifier): receiveFinal(handle, .puback, identifier)
        case .pubrec(let identifier): receivePubrec(handle, identifier)
        case .pubrel(let identifier): receivePubrel(handle, identifier)
        case .pubcomp(let identifier): receiveFinal(handle, .pubcomp, identifier)
        case .subscribe(let subscribe): receiveSubscribe(handle, subscribe, frame.packet, bytes)
        case .unsubscribe(let unsubscribe):
            receiveUnsubscribe(handle, unsubscribe, frame.packet, bytes)
        case .pingreq: receivePing(handle)
        case .disconnect:
            end(handle, .disconnect)
        case .connect, .connack, .suback, .unsuback, .pingresp:
            preconditionFailure("the connection machine let \(frame.type) pass")
        }
    }

    /// Ends a connection whose first packet, at `offset`, is not CONNECT.
    private mutating func endStranger(
        _ handle: Handle, _ violation: ProtocolViolation, _ bytes: UnsafeRawBufferPointer,
        _ offset: Int
    ) {
        let opening = ForeignProtocol(
            beginning: UnsafeRawBufferPointer(rebasing: bytes[offset...]))
        end(handle, .protocolViolation(violation), opening: opening)
    }

    /// Closes after a malformed packet; only an unsupported level gets CONNACK [MQTT-3.1.2-2].
    private mutating func endMalformed(
        _ handle: Handle, _ error: MalformedPacket, _ bytes: UnsafeRawBufferPointer, _ offset: Int
    ) {
        guard connections[handle].machine.isAwaitingConnect else {
            end(handle, .protocolViolation(.malformed(error)))
            return
        }
        if bytes[offset] == Self.tlsHandshakeRecord {
            end(handle, .tlsOnPlainListener)
        } else if case .unsupportedProtocolLevel = error {
            refuseConnect(
                handle, .unacceptableProtocolVersion, .unacceptableProtocolVersion, [],
                userName: nil)
        } else {
            endStranger(handle, .malformed(error), bytes, offset)
        }
    }
}
