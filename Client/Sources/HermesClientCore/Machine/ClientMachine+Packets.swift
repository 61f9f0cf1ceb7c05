import MQTTCodec

extension ClientMachine {
    /// Bytes have come on the connection `number`; those of a connection that is over are ignored.
    package mutating func received(
        _ input: [UInt8], on number: ConnectionNumber, at moment: Moment
    ) {
        guard link?.number == number, !input.isEmpty else { return }
        let now = moment.monotonicMilliseconds
        link?.heartbeat.noteRead(at: now)
        guard let part = link?.stream.append(input, at: now) else { return }
        for frame in part.frames {
            // A packet may have ended the connection, and those behind it do not count.
            guard link?.number == number else { return }
            handle(frame, in: part.bytes, at: moment)
        }
        if let fault = part.fault, link?.number == number { drop(.malformed(fault), at: moment) }
    }

    private mutating func handle(
        _ frame: PacketDecoder.Frame, in bytes: [UInt8], at moment: Moment
    ) {
        let packet: ControlPacket
        do throws(MalformedPacket) {
            packet = try bytes.read { content throws(MalformedPacket) in
                try PacketDecoder.decode(frame, content)
            }
        } catch {
            drop(.malformed(error), at: moment)
            return
        }
        if case .connack(let connack) = packet {
            receive(connack, at: moment)
            return
        }
        guard case .connected = phase else {
            drop(.violation(.packetBeforeConnack(packet.type)), at: moment)
            return
        }
        let now = moment.monotonicMilliseconds
        switch packet {
        case .publish(let publish): receive(publish, in: bytes, at: moment)
        case .puback(let identifier): receivePuback(identifier, at: moment)
        case .pubrec(let identifier): receivePubrec(identifier, at: moment)
        case .pubcomp(let identifier): receivePubcomp(identifier, at: moment)
        case .pubrel(let identifier):
            if stored.received[identifier] != nil { record(.receivedReleased(identifier)) }
            send(.pubcomp, identifier, at: now)
        case .suback(let suback):
            receiveAnswer(
                .suback, suback.packetIdentifier,
                codes: Array(bytes[suback.returnCodes.start..<suback.returnCodes.end]), at: moment)
        case .unsuback(let identifier):
            receiveAnswer(.unsuback, identifier, codes: nil, at: moment)
        case .pingresp: receivePingresp(at: moment)
        case .connack, .connect, .subscribe, .unsubscribe, .pingreq, .disconnect:
            drop(.violation(.clientPacket(packet.type)), at: moment)
        }
    }
}
