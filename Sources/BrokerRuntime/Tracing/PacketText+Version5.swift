import BrokerAPI
import MQTTCodec

/// Packets of MQTT 5.0 in words: as those of 3.1.1, with reason codes and properties.
extension PacketText {
    /// True for the CONNECT of a client of 5.0.
    static func is5(_ bytes: UnsafeRawBufferPointer, _ size: Int) -> Bool {
        guard bytes.first == PacketType.connect.firstByte,
            case .frame(let frame)? = try? PacketDecoder.frame(
                bytes.bytes, at: 0, maximumSize: size)
        else { return false }
        return PacketDecoder5.isSpoken(inConnect: frame.body, bytes.bytes)
    }

    mutating func describe5(_ bytes: UnsafeRawBufferPointer, _ type: PacketType5, _ size: Int) {
        let sender: PacketSender = type.isSent(by: .client) ? .client : .server
        guard size == bytes.count else {
            guard let begun = PacketDecoder5.begunPublish(bytes.bytes, at: 0),
                let packet = Self.decode(begun, bytes)
            else { return }
            describe(packet, bytes, payloadBytes: { size - $0.start })
            return
        }
        guard
            case .frame(let frame)? = try? PacketDecoder5.frame(
                bytes.bytes, at: 0, from: sender, maximumSize: size),
            let packet = Self.decode(frame, bytes)
        else {
            text += ", malformed"
            return
        }
        describe(packet, bytes, payloadBytes: { Int($0.count) })
    }

    /// The tables of a few packets depend on the sender, which a trace does not tell apart here.
    private static func decode(
        _ frame: PacketDecoder5.Frame, _ bytes: UnsafeRawBufferPointer
    ) -> ControlPacket5? {
        (try? PacketDecoder5.decode(frame, bytes.bytes, from: .client))
            ?? (try? PacketDecoder5.decode(frame, bytes.bytes, from: .server))
    }

    private mutating func describe(
        _ packet: ControlPacket5, _ bytes: UnsafeRawBufferPointer, payloadBytes: (ByteRange) -> Int
    ) {
        func string(_ range: ByteRange) -> String { String(decoding: bytes[range], as: UTF8.self) }
        switch packet {
        case .connect(let connect):
            text =
                "CONNECT 5.0, client \(string(connect.clientID)), "
                + (connect.cleanStart ? "clean start, " : "")
                + "session expiry \(connect.values.sessionExpiryInterval) s, keep alive "
                + "\(connect.keepAlive) s"
            if let userName = connect.userName { text += ", user \(string(userName))" }
            if connect.password != nil { text += ", with password" }
            if let will = connect.will { text += ", will on \(string(will.topic.range))" }
        case .connack(let connack):
            text =
                "CONNACK \(Self.text(connack.code))"
                + (connack.sessionPresent ? ", session present" : "")
        case .publish(let publish):
            switch publish.topic {
            case .name(let name): text = "PUBLISH \(string(name.range)), "
            case .named(let name, let alias):
                text = "PUBLISH \(string(name.range)) (alias \(alias.rawValue)), "
            case .alias(let alias): text = "PUBLISH alias \(alias.rawValue), "
            }
            text += Self.text(publish.delivery)
            text += ", \(payloadBytes(publish.payload)) bytes"
            if publish.retain { text += ", RETAIN" }
            if let seconds = publish.properties.messageExpiryInterval(in: bytes.bytes) {
                text += ", expires in \(seconds) s"
            }
            if !publish.properties.isEmpty {
                text += ", \(publish.properties.range.count) bytes of properties"
            }
            payload = [UInt8](bytes[publish.payload].prefix(TraceRequest.mostPayloadBytes))
        case .puback(let answer): text = Self.text("PUBACK", answer)
        case .pubrec(let answer): text = Self.text("PUBREC", answer)
        case .pubrel(let answer): text = Self.text("PUBREL", answer)
        case .pubcomp(let answer): text = Self.text("PUBCOMP", answer)
        case .subscribe(var subscribe):
            text = "SUBSCRIBE id \(subscribe.packetIdentifier.rawValue)"
            list(of: subscribe.count) {
                subscribe.next(in: bytes.bytes).map {
                    "\(string($0.filter.text)) QoS \($0.options.qos.rawValue)"
                }
            }
        case .unsubscribe(var unsubscribe):
            text = "UNSUBSCRIBE id \(unsubscribe.packetIdentifier.rawValue)"
            list(of: unsubscribe.count) {
                unsubscribe.next(in: bytes.bytes).map { string($0.text) }
            }
        case .suback(let answers): describe("SUBACK", answers, bytes)
        case .unsuback(let answers): describe("UNSUBACK", answers, bytes)
        case .pingreq: text = "PINGREQ"
        case .pingresp: text = "PINGRESP"
        case .disconnect(let disconnect): text = "DISCONNECT \(Self.text(disconnect.code))"
        case .auth(let auth): text = "AUTH \(Self.text(auth.code))"
        }
    }

    private mutating func describe(
        _ name: String, _ answers: FilterAnswers5, _ bytes: UnsafeRawBufferPointer
    ) {
        text = "\(name) id \(answers.packetIdentifier.rawValue)"
        var codes = bytes[answers.codes].makeIterator()
        list(of: Int(answers.codes.count)) {
            codes.next().flatMap { ReasonCode(rawValue: $0) }.map { Self.text($0) }
        }
    }

    private static func text(_ name: String, _ answer: Acknowledgement5) -> String {
        "\(name) id \(answer.packetIdentifier.rawValue)"
            + (answer.code == .success ? "" : ", \(text(answer.code))")
    }

    /// A reason code as its number and its name.
    private static func text(_ code: ReasonCode) -> String {
        let digits = String(code.rawValue, radix: 16, uppercase: true)
        return "0x\(digits.count == 1 ? "0" : "")\(digits)" + (code == .success ? "" : " \(code)")
    }
}
