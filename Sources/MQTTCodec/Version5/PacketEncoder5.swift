/// A whole packet of at most eight bytes, as a little-endian word.
public struct ShortPacket: Hashable, Sendable, BitwiseCopyable {
    public let word: UInt64
    /// Bytes of the packet.
    public let count: Int

    fileprivate init(_ bytes: UInt8...) {
        var word: UInt64 = 0
        for (index, byte) in bytes.enumerated() { word |= UInt64(byte) << (8 * UInt64(index)) }
        self.word = word
        count = bytes.count
    }
}

/// Appends encoded packets of MQTT 5.0 to a byte array. The packet path uses ``PublishEncoder5``
/// and ``short(_:_:_:)`` instead.
public enum PacketEncoder5 {
    /// A whole PUBACK, PUBREC, PUBREL or PUBCOMP without properties, in its shortest form: the
    /// code of a success is left out.
    public static func short(
        _ type: PacketType5, _ identifier: PacketIdentifier, _ code: ReasonCode = .success
    ) -> ShortPacket {
        let upper = UInt8(identifier.rawValue >> 8)
        let lower = UInt8(identifier.rawValue & 0xFF)
        return code == .success
            ? ShortPacket(type.firstByte, 2, upper, lower)
            : ShortPacket(type.firstByte, 3, upper, lower, code.rawValue)
    }

    /// A whole DISCONNECT without properties, in its shortest form.
    public static func short(disconnect code: ReasonCode) -> ShortPacket {
        let first = PacketType5.disconnect.firstByte
        return code == .success ? ShortPacket(first, 0) : ShortPacket(first, 1, code.rawValue)
    }

    /// Encodes a packet whose fields are ranges of `source`.
    public static func append(
        _ packet: ControlPacket5, fieldsIn source: UnsafeRawBufferPointer,
        to output: inout [UInt8]
    ) {
        var body: [UInt8] = []
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        let first = appendBody(packet, source, more: nothing, to: &body)
        append(first, body, to: &output)
    }

    /// Encodes an answer with a reason in words, unless that makes it larger than its receiver
    /// allows [MQTT-3.2.2-19] [MQTT-3.4.2-2] [MQTT-3.5.2-2] [MQTT-3.6.2-2] [MQTT-3.7.2-2]
    /// [MQTT-3.9.2-1] [MQTT-3.11.2-1] [MQTT-3.14.2-3] [MQTT-3.15.2-2].
    ///
    /// The packet is one that may have a reason string, and has none among its properties.
    /// `maximumSize` is in bytes of the whole packet. Returns false, having written nothing, if it
    /// is too large even without the reason [MQTT-3.1.2-24].
    public static func append(
        _ packet: ControlPacket5, fieldsIn source: UnsafeRawBufferPointer,
        reasonString: UnsafeRawBufferPointer, maximumSize: Int, to output: inout [UInt8]
    ) -> Bool {
        let start = output.count
        var reason: [UInt8] = []
        PropertyEncoder.append(Property.reasonString, reasonString, to: &reason)
        reason.withUnsafeBytes { reason in
            var body: [UInt8] = []
            let first = appendBody(packet, source, more: reason, to: &body)
            append(first, body, to: &output)
        }
        guard output.count - start > maximumSize else { return true }
        output.removeSubrange(start...)
        append(packet, fieldsIn: source, to: &output)
        guard output.count - start > maximumSize else { return true }
        output.removeSubrange(start...)
        return false
    }

    private static func append(_ first: UInt8, _ body: [UInt8], to output: inout [UInt8]) {
        output.append(first)
        VariableByteInteger.append(body.count, to: &output)
        output.append(contentsOf: body)
    }

    /// Appends all behind the fixed header, with `more` behind the packet's own properties, and
    /// returns the packet's first byte.
    private static func appendBody(
        _ packet: ControlPacket5, _ source: UnsafeRawBufferPointer,
        more: UnsafeRawBufferPointer, to body: inout [UInt8]
    ) -> UInt8 {
        switch packet {
        case .connect(let connect): append(connect, source, to: &body)
        case .connack(let connack):
            body.append(connack.sessionPresent ? 1 : 0)
            body.append(connack.code.rawValue)
            append(source[connack.properties.range], more, to: &body)
        case .publish(let publish): return append(publish, source, to: &body)
        case .puback(let answer), .pubrec(let answer), .pubrel(let answer),
            .pubcomp(let answer):
            PropertyEncoder.append(
                integer: answer.packetIdentifier.rawValue, to: &body)
            append(answer.code, source[answer.properties.range], more, to: &body)
        case .subscribe(let subscribe):
            PropertyEncoder.append(integer: subscribe.packetIdentifier.rawValue, to: &body)
            append(source[subscribe.properties.range], more, to: &body)
            body.append(contentsOf: source[subscribe.encodedRequests])
        case .suback(let answers), .unsuback(let answers):
            PropertyEncoder.append(integer: answers.packetIdentifier.rawValue, to: &body)
            append(source[answers.properties.range], more, to: &body)
            body.append(contentsOf: source[answers.codes])
        case .unsubscribe(let unsubscribe):
            PropertyEncoder.append(integer: unsubscribe.packetIdentifier.rawValue, to: &body)
            append(source[unsubscribe.properties.range], more, to: &body)
            body.append(contentsOf: source[unsubscribe.encodedFilters])
        case .pingreq, .pingresp: break
        case .disconnect(let disconnect):
            append(disconnect.code, source[disconnect.properties.range], more, to: &body)
        case .auth(let auth):
            let isShort = auth.code == .success && auth.properties.isEmpty && more.isEmpty
            if !isShort {
                body.append(auth.code.rawValue)
                append(source[auth.properties.range], more, to: &body)
            }
        }
        return packet.type.firstByte
    }

    /// Appends properties with their length, which is 0 for none [MQTT-2.2.2-1].
    private static func append(
        _ properties: UnsafeRawBufferPointer, _ more: UnsafeRawBufferPointer,
        to body: inout [UInt8]
    ) {
        VariableByteInteger.append(properties.count + more.count, to: &body)
        body.append(contentsOf: properties)
        body.append(contentsOf: more)
    }

    /// Appends code and properties, or as much as says the same.
    private static func append(
        _ code: ReasonCode, _ properties: UnsafeRawBufferPointer, _ more: UnsafeRawBufferPointer,
        to body: inout [UInt8]
    ) {
        let hasProperties = !properties.isEmpty || !more.isEmpty
        if code != .success || hasProperties { body.append(code.rawValue) }
        if hasProperties { append(properties, more, to: &body) }
    }

    private static func append(
        _ publish: Publish5, _ source: UnsafeRawBufferPointer, to body: inout [UInt8]
    ) -> UInt8 {
        let topic = publish.topic.name.map { source[$0.range] }
        PropertyEncoder.append(
            field: topic ?? UnsafeRawBufferPointer(start: nil, count: 0), to: &body)
        var isDuplicate = false
        switch publish.delivery {
        case .atMostOnce: break
        case .atLeastOnce(let identifier, let isAgain), .exactlyOnce(let identifier, let isAgain):
            isDuplicate = isAgain
            PropertyEncoder.append(integer: identifier.rawValue, to: &body)
        }
        let properties = source[publish.properties.range]
        VariableByteInteger.append(properties.count, to: &body)
        body.append(contentsOf: properties)
        body.append(contentsOf: source[publish.payload])
        return PublishEncoder.firstByte(
            qos: publish.delivery.qos, retain: publish.retain, isDuplicate: isDuplicate)
    }

    private static func append(
        _ connect: Connect5, _ source: UnsafeRawBufferPointer, to body: inout [UInt8]
    ) {
        let name: StaticString = "MQTT"
        PropertyEncoder.append(
            field: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount),
            to: &body)
        body.append(PacketDecoder5.protocolLevel)
        var flags: UInt8 = connect.cleanStart ? 0x02 : 0
        if let will = connect.will {
            flags |= 0x04 | will.qos.rawValue << 3 | (will.retain ? 0x20 : 0)
        }
        if connect.userName != nil { flags |= 0x80 }
        if connect.password != nil { flags |= 0x40 }
        body.append(flags)
        PropertyEncoder.append(integer: connect.keepAlive, to: &body)
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        append(source[connect.properties.range], nothing, to: &body)
        PropertyEncoder.append(field: source[connect.clientID], to: &body)
        if let will = connect.will {
            append(source[will.properties.range], nothing, to: &body)
            PropertyEncoder.append(field: source[will.topic.range], to: &body)
            PropertyEncoder.append(field: source[will.message], to: &body)
        }
        if let userName = connect.userName {
            PropertyEncoder.append(field: source[userName], to: &body)
        }
        if let password = connect.password {
            PropertyEncoder.append(field: source[password], to: &body)
        }
    }
}
