import MQTTCodec

extension PacketContent5 {
    /// Pairs of lower-case digits without blanks; `-` for none.
    package static func hex(_ bytes: [UInt8]) -> String {
        guard !bytes.isEmpty else { return "-" }
        return bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }

    private static func all(_ properties: [PropertyContent]) -> String {
        "[" + properties.map(\.description).joined(separator: " ") + "]"
    }

    private static func codes(_ codes: [ReasonCode]) -> String { hex(codes.map(\.rawValue)) }

    /// The packet on a line: names as the standard has them, flags and numbers in decimal, the
    /// rest in hexadecimal. `scripts/generate-packets5` writes the same.
    package var description: String {
        switch self {
        case .connect(let connect): connect.text
        case .connack(let sessionPresent, let code, let properties):
            "CONNACK present=\(sessionPresent ? 1 : 0) code=\(code.rawValue) \(Self.all(properties))"
        case .publish(let publish): publish.text
        case .puback(let identifier, let code, let properties):
            Self.answer("PUBACK", identifier, code, properties)
        case .pubrec(let identifier, let code, let properties):
            Self.answer("PUBREC", identifier, code, properties)
        case .pubrel(let identifier, let code, let properties):
            Self.answer("PUBREL", identifier, code, properties)
        case .pubcomp(let identifier, let code, let properties):
            Self.answer("PUBCOMP", identifier, code, properties)
        case .subscribe(let identifier, let properties, let requests):
            "SUBSCRIBE id=\(identifier.rawValue) \(Self.all(properties)) "
                + requests.map { "\(Self.hex($0.filter)):\($0.options.encoded)" }
                .joined(separator: ",")
        case .suback(let identifier, let properties, let codes):
            "SUBACK id=\(identifier.rawValue) \(Self.all(properties)) codes=\(Self.codes(codes))"
        case .unsubscribe(let identifier, let properties, let filters):
            "UNSUBSCRIBE id=\(identifier.rawValue) \(Self.all(properties)) "
                + filters.map(Self.hex).joined(separator: ",")
        case .unsuback(let identifier, let properties, let codes):
            "UNSUBACK id=\(identifier.rawValue) \(Self.all(properties)) codes=\(Self.codes(codes))"
        case .pingreq: "PINGREQ"
        case .pingresp: "PINGRESP"
        case .disconnect(let code, let properties):
            "DISCONNECT code=\(code.rawValue) \(Self.all(properties))"
        case .auth(let code, let properties):
            "AUTH code=\(code.rawValue) \(Self.all(properties))"
        }
    }

    private static func answer(
        _ name: String, _ identifier: PacketIdentifier, _ code: ReasonCode,
        _ properties: [PropertyContent]
    ) -> String {
        "\(name) id=\(identifier.rawValue) code=\(code.rawValue) \(all(properties))"
    }

    fileprivate static func text(_ properties: [PropertyContent]) -> String { all(properties) }
}

extension PacketContent5.Connect {
    fileprivate var text: String {
        var text =
            "CONNECT clean=\(cleanStart ? 1 : 0) keepalive=\(keepAlive) "
            + "\(PacketContent5.text(properties)) client=\(PacketContent5.hex(clientID))"
        if let will {
            text +=
                " will qos=\(will.qos.rawValue) retain=\(will.retain ? 1 : 0) "
                + "\(PacketContent5.text(will.properties)) topic=\(PacketContent5.hex(will.topic)) "
                + "message=\(PacketContent5.hex(will.message))"
        }
        if let userName { text += " user=\(PacketContent5.hex(userName))" }
        if let password { text += " password=\(PacketContent5.hex(password))" }
        return text
    }
}

extension PacketContent5.Publish {
    fileprivate var text: String {
        var text = "PUBLISH qos=\(delivery.qos.rawValue)"
        switch delivery {
        case .atMostOnce: break
        case .atLeastOnce(let identifier, let isDuplicate),
            .exactlyOnce(let identifier, let isDuplicate):
            text += " dup=\(isDuplicate ? 1 : 0) id=\(identifier.rawValue)"
        }
        return text
            + " retain=\(retain ? 1 : 0) topic=\(PacketContent5.hex(topic)) "
            + "\(PacketContent5.text(properties)) payload=\(PacketContent5.hex(payload))"
    }
}
