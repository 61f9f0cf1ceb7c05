import HermesTesting
import MQTTCodec

/// Valid packets of MQTT 5.0 from a seeded generator.
struct RandomPackets5 {
    var random: SplitMix64

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func packet() -> PacketContent5 {
        switch random.pick(PacketType5.allCases) {
        case .connect: .connect(connect())
        case .connack:
            random.once(in: 2)
                ? .connack(
                    sessionPresent: random.once(in: 2), .success, properties(.connack))
                : .connack(
                    sessionPresent: false, failure(.connack, .server), properties(.connack))
        case .publish: .publish(publish())
        case .puback:
            .puback(identifier(), code(.puback, .client), properties(.acknowledgement))
        case .pubrec:
            .pubrec(identifier(), code(.pubrec, .client), properties(.acknowledgement))
        case .pubrel:
            .pubrel(identifier(), code(.pubrel, .client), properties(.acknowledgement))
        case .pubcomp:
            .pubcomp(identifier(), code(.pubcomp, .client), properties(.acknowledgement))
        case .subscribe:
            .subscribe(identifier(), properties(.subscribe), several { $0.request() })
        case .suback:
            .suback(
                identifier(), properties(.acknowledgement), several { $0.code(.suback, .server) })
        case .unsubscribe:
            .unsubscribe(
                identifier(), properties(.unsubscribe), several { utf8($0.text(least: 1)) })
        case .unsuback:
            .unsuback(
                identifier(), properties(.acknowledgement),
                several { $0.code(.unsuback, .server) })
        case .pingreq: .pingreq
        case .pingresp: .pingresp
        case .disconnect:
            random.once(in: 2)
                ? .disconnect(code(.disconnect, .client), properties(.disconnect(.client)))
                : .disconnect(failure(.disconnect, .server), properties(.disconnect(.server)))
        case .auth: auth()
        }
    }

    mutating func publish() -> PacketContent5.Publish {
        let sender = random.pick(PacketSender.allCases)
        var publish = PacketContent5.Publish(
            delivery(), topic: utf8(text(least: 1)), properties(.publish(sender)),
            payload: random.bytes(random.number(in: 0...300)), retain: random.once(in: 2))
        if publish.properties.contains(where: { $0.identifier == .topicAlias }),
            random.once(in: 2)
        {
            publish.topic = []
        }
        return publish
    }

    private mutating func connect() -> PacketContent5.Connect {
        var connect = PacketContent5.Connect(clientID: utf8(text(least: 0)))
        connect.cleanStart = random.once(in: 2)
        connect.keepAlive = UInt16(random.number(in: 0...65_535))
        connect.properties = properties(.connect)
        if random.once(in: 2) {
            connect.will = .init(
                topic: utf8(text(least: 1)), message: random.bytes(random.number(in: 0...40)),
                qos: random.pick(QoS.allCases), retain: random.once(in: 2), properties(.will))
        }
        if random.once(in: 2) { connect.userName = utf8(text(least: 0)) }
        if random.once(in: 2) { connect.password = random.bytes(random.number(in: 0...40)) }
        return connect
    }

    private mutating func auth() -> PacketContent5 {
        guard !random.once(in: 8) else { return .auth(.success, []) }
        let sender = random.pick(PacketSender.allCases)
        let rest = properties(.auth).filter { $0.identifier != .authenticationMethod }
        return .auth(
            code(.auth, sender), rest + [.text(.authenticationMethod, text(least: 0))])
    }

    /// Properties that may stand there, in any order; user properties and, where they may be
    /// repeated, subscription identifiers several times.
    mutating func properties(_ place: PropertyPlace) -> [PropertyContent] {
        guard !random.once(in: 3) else { return [] }
        var properties: [PropertyContent] = []
        for identifier in PropertyIdentifier.allCases
        where place.allowed.contains(identifier) && random.once(in: 2) {
            let mayRepeat =
                identifier == .userProperty
                || place == .publish(.server) && identifier == .subscriptionIdentifier
            for _ in 0...(mayRepeat ? random.number(in: 0...3) : 0) {
                properties.append(property(identifier))
            }
        }
        let hasMethod = properties.contains { $0.identifier == .authenticationMethod }
        if !hasMethod { properties.removeAll { $0.identifier == .authenticationData } }
        return properties.shuffled(using: &random)
    }

    private mutating func property(_ identifier: PropertyIdentifier) -> PropertyContent {
        switch identifier {
        case .payloadFormatIndicator, .requestProblemInformation, .requestResponseInformation,
            .maximumQoS, .retainAvailable, .wildcardSubscriptionAvailable,
            .subscriptionIdentifiersAvailable, .sharedSubscriptionAvailable:
            .number(identifier, UInt32(random.number(in: 0...1)))
        case .messageExpiryInterval, .sessionExpiryInterval, .willDelayInterval:
            .number(identifier, random.once(in: 4) ? .max : UInt32(random.number(in: 0...100_000)))
        case .maximumPacketSize: .number(identifier, UInt32(random.number(in: 1...100_000)))
        case .subscriptionIdentifier:
            .number(
                identifier,
                random.pick([1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455]))
        case .serverKeepAlive, .topicAliasMaximum:
            .number(identifier, UInt32(random.number(in: 0...65_535)))
        case .receiveMaximum, .topicAlias:
            .number(identifier, UInt32(random.number(in: 1...65_535)))
        case .responseTopic: .text(identifier, text(least: 1))
        case .contentType, .assignedClientIdentifier, .authenticationMethod,
            .responseInformation, .serverReference, .reasonString:
            .text(identifier, text(least: 0))
        case .correlationData, .authenticationData:
            .field(identifier, random.bytes(random.number(in: 0...40)))
        case .userProperty: .user(text(least: 0), text(least: 0))
        }
    }

    private mutating func request() -> PacketContent5.Request {
        .init(
            utf8(text(least: 1)),
            SubscriptionOptions(
                qos: random.pick(QoS.allCases), noLocal: random.once(in: 2),
                retainAsPublished: random.once(in: 2),
                retainHandling: random.pick(SubscriptionOptions.RetainHandling.allCases)))
    }

    private mutating func several<Item>(_ item: (inout Self) -> Item) -> [Item] {
        (0...random.number(in: 0...5)).map { _ in item(&self) }
    }

    private mutating func code(_ type: PacketType5, _ sender: PacketSender) -> ReasonCode {
        random.pick(ReasonCode.allCases.filter { $0.isAllowed(in: type, from: sender) })
    }

    private mutating func failure(_ type: PacketType5, _ sender: PacketSender) -> ReasonCode {
        random.pick(
            ReasonCode.allCases.filter { $0.isFailure && $0.isAllowed(in: type, from: sender) })
    }

    private mutating func identifier() -> PacketIdentifier {
        PacketIdentifier(position: UInt64(random.number(in: 0...65_534)))
    }

    private mutating func delivery() -> Delivery {
        switch random.pick(QoS.allCases) {
        case .atMostOnce: .atMostOnce
        case .atLeastOnce: .atLeastOnce(identifier(), isDuplicate: random.once(in: 2))
        case .exactlyOnce: .exactlyOnce(identifier(), isDuplicate: random.once(in: 2))
        }
    }

    /// Without wildcards and U+0000; with characters of all encoded sizes.
    private mutating func text(least: Int) -> String {
        let alphabet: [Character] = [
            "a", "b", "/", "$", " ", "\u{1}", "é", "€", "\u{FEFF}", "\u{1D11E}",
        ]
        let count = random.number(in: least...30)
        return String((0..<count).map { _ in random.pick(alphabet) })
    }
}
