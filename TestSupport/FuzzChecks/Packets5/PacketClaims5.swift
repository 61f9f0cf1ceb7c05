import HermesTesting
import MQTTCodec

/// What holds for each packet of MQTT 5.0 that was decoded.
enum PacketClaims5 {
    static func check(
        _ packet: ControlPacket5, _ content: PacketContent5, _ stream: [UInt8], size: Int,
        _ random: inout SplitMix64
    ) throws(CheckFailure) {
        try checkEncoding(content, size: size)
        switch packet {
        case .connect(let connect):
            try checkValues(connect, content)
            try checkLookups(connect.properties, stream)
            if let will = connect.will {
                try checkLookups(will.properties, stream)
                try checkForwarded(will.properties, stream)
            }
        case .connack(let connack): try checkLookups(connack.properties, stream)
        case .publish(let publish):
            try checkLookups(publish.properties, stream)
            try checkForwarded(publish.properties, stream)
            try checkSentOn(publish, stream, &random)
        case .puback(let answer), .pubrec(let answer), .pubrel(let answer),
            .pubcomp(let answer):
            try checkLookups(answer.properties, stream)
        case .subscribe(var subscribe):
            try checkLookups(subscribe.properties, stream)
            var count = 0
            while let request = subscribe.next(in: stream.span.bytes) {
                try checkFilter(request.filter, stream)
                count += 1
            }
            try CheckFailure.unless(count == subscribe.count, "\(count) of \(subscribe.count)")
        case .unsubscribe(var unsubscribe):
            try checkLookups(unsubscribe.properties, stream)
            var count = 0
            while let filter = unsubscribe.next(in: stream.span.bytes) {
                try checkFilter(filter, stream)
                count += 1
            }
            try CheckFailure.unless(count == unsubscribe.count, "\(count) of \(unsubscribe.count)")
        case .suback(let answers), .unsuback(let answers):
            try checkLookups(answers.properties, stream)
        case .disconnect(let disconnect): try checkLookups(disconnect.properties, stream)
        case .auth(let auth): try checkLookups(auth.properties, stream)
        case .pingreq, .pingresp: break
        }
    }

    /// A packet decodes again from its encoding, which is as short as any.
    private static func checkEncoding(
        _ content: PacketContent5, size: Int
    ) throws(CheckFailure) {
        let encoded: [UInt8]
        do throws(PacketFault) {
            encoded = try content.encoded()
        } catch {
            throw CheckFailure("\(content) is not encoded: \(error)")
        }
        try CheckFailure.unless(
            encoded.count <= size, "\(content) takes \(encoded.count) bytes, came in \(size)")
        let again = SlowDecoder5.decode(encoded[...], from: content.sender, maximumSize: .max)
        try CheckFailure.unless(
            again == .packet(content, size: encoded.count), "\(content) decodes again as \(again)")
    }

    /// Finding a property by name gives the first of that name.
    private static func checkLookups(
        _ properties: Properties, _ stream: [UInt8]
    ) throws(CheckFailure) {
        let all = PropertyContent.all(properties, in: stream)
        for identifier in PropertyIdentifier.allCases {
            let found = properties.first(identifier, in: stream.span.bytes)
            let expected = all.first { $0.identifier == identifier }
            try CheckFailure.unless(
                found.map { PropertyContent($0, in: stream) } == expected
                    && properties.present.contains(identifier) == (expected != nil),
                "\(identifier) among \(all)")
        }
    }

    private static func checkValues(
        _ connect: Connect5, _ content: PacketContent5
    ) throws(CheckFailure) {
        guard case .connect(let expected) = content else { return }
        func number(_ identifier: PropertyIdentifier, _ absent: UInt32) -> UInt32 {
            for case .number(identifier, let value) in expected.properties { return value }
            return absent
        }
        let values = connect.values
        try CheckFailure.unless(
            values.sessionExpiryInterval == number(.sessionExpiryInterval, 0)
                && UInt32(values.receiveMaximum) == number(.receiveMaximum, 65_535)
                && values.maximumPacketSize ?? 0 == number(.maximumPacketSize, 0)
                && UInt32(values.topicAliasMaximum) == number(.topicAliasMaximum, 0)
                && values.requestResponseInformation
                    == (number(.requestResponseInformation, 0) == 1)
                && values.requestProblemInformation == (number(.requestProblemInformation, 1) == 1),
            "\(values) of \(content)")
    }

    /// Exactly what a server passes on is copied, in its order, and is taken when it comes back.
    private static func checkForwarded(
        _ properties: Properties, _ stream: [UInt8]
    ) throws(CheckFailure) {
        let forwarded = ForwardedProperties(properties, in: stream.span.bytes)
        var kept = [UInt8](repeating: 0, count: forwarded.count)
        kept.withUnsafeMutableBytes { kept in
            guard let base = kept.baseAddress else { return }
            stream.withUnsafeBytes { forwarded.copy(to: base, from: $0) }
        }
        let range = ByteRange(offset: 0, count: kept.count)
        let isTaken = (try? ForwardedProperties(stored: range, in: kept.span.bytes)) != nil
        try CheckFailure.unless(isTaken, "\(WireBytes(kept)) are not taken back")
        let contents = PropertyContent.read(PropertyCursor(range), in: kept)
        let expected = expectedForwarded(properties, stream)
        try CheckFailure.unless(
            contents == expected, "\(contents) are passed on instead of \(expected)")
    }

    private static func expectedForwarded(
        _ properties: Properties, _ stream: [UInt8]
    ) -> [PropertyContent] {
        PropertyContent.all(properties, in: stream).filter {
            PropertyModel.forwarded.contains($0.identifier.rawValue)
        }
    }

    /// A message that is sent on has this hop's properties, then those that are passed on, and as
    /// many bytes as its layout says.
    private static func checkSentOn(
        _ publish: Publish5, _ stream: [UInt8], _ random: inout SplitMix64
    ) throws(CheckFailure) {
        let identifiers = (0..<random.number(in: 0...3)).compactMap { _ in
            SubscriptionIdentifier(random.pick([1, 127, 128, 16_384, 268_435_455]))
        }
        let hasName = publish.topic.name != nil
        let expiry = random.once(in: 2) ? UInt32(random.number(in: 0...100_000)) : nil
        let alias =
            !hasName || random.once(in: 2) ? TopicAlias(UInt16(random.number(in: 1...9))) : nil
        let keepsTopic = alias == nil || random.once(in: 2)
        let sent = identifiers.withUnsafeBufferPointer { identifiers in
            EncodedPublish(
                publish, in: stream,
                PublishHop(
                    messageExpiryInterval: expiry, topicAlias: alias,
                    subscriptionIdentifiers: identifiers), keepsTopic: keepsTopic)
        }
        guard case .publish(var expected) = PacketContent5(.publish(publish), in: stream) else {
            return
        }
        if !keepsTopic { expected.topic = [] }
        expected.properties =
            (expiry.map { [.number(.messageExpiryInterval, $0)] } ?? [])
            + (alias.map { [.number(.topicAlias, UInt32($0.rawValue))] } ?? [])
            + identifiers.map { .number(.subscriptionIdentifier, $0.rawValue) }
            + expectedForwarded(publish.properties, stream)
        let outcome = SlowDecoder5.decode(sent.bytes[...], from: .server, maximumSize: .max)
        try CheckFailure.unless(
            outcome == .packet(.publish(expected), size: sent.layout.count),
            "\(PacketContent5.publish(expected)) is sent on as \(outcome)")
    }

    /// A filter is good or not by itself, as a check of its levels finds.
    private static func checkFilter(
        _ filter: RequestedFilter, _ stream: [UInt8]
    ) throws(CheckFailure) {
        let text = stream[filter.text.start..<filter.text.end]
        let levels = text.split(separator: 0x2F, omittingEmptySubsequences: false)
        let isGood =
            !text.isEmpty
            && levels.enumerated().allSatisfy { index, level in
                let hasHash = level.contains(0x23)
                return (!hasHash && !level.contains(0x2B)) || level == [0x2B]
                    || (level == [0x23] && index == levels.count - 1)
            }
        let isTaken =
            switch filter.filter {
            case .success(let checked): checked.range == filter.text
            case .failure(let fault): fault.reasonCode != .topicFilterInvalid
            }
        try CheckFailure.unless(isTaken == isGood, "\(WireBytes(Array(text))): \(filter.filter)")
        try CheckFailure.unless(
            filter.isShared(in: stream.span.bytes) == text.starts(with: "$share/".utf8),
            "\(WireBytes(Array(text)))")
    }
}
