import HermesTesting
import MQTTCodec

/// Valid packets of MQTT 5.0 by type; each is decoded and encoded.
enum GoldenTable5 {
    static let all =
        connects + connacks + publishes + acknowledgements + subscriptions + others

    static let connects: [GoldenPacket5] = [
        GoldenPacket5(
            "10 0D 0004 4D515454 05 02 0000 00 0000", connect5(),
            "the shortest CONNECT: no client identifier, clean start"),
        GoldenPacket5(
            "10 0E 0004 4D515454 05 00 003C 00 0001 61",
            connect5("a") {
                $0.cleanStart = false
                $0.keepAlive = 60
            }, "clean start 0"),
        GoldenPacket5(
            """
            10 43 0004 4D515454 05 02 0000 35
              11 FFFFFFFF 21 0001 27 00000001 22 FFFF 19 01 17 00 26 0001 61 0001 62
              26 0001 61 0000 15 000C 534352414D2D5348412D3235 16 0002 00FF
              0001 61
            """,
            connect5("a") {
                $0.properties = [
                    .number(.sessionExpiryInterval, 0xFFFF_FFFF), .number(.receiveMaximum, 1),
                    .number(.maximumPacketSize, 1), .number(.topicAliasMaximum, 65_535),
                    .number(.requestResponseInformation, 1),
                    .number(.requestProblemInformation, 0), .user("a", "b"), .user("a", ""),
                    .text(.authenticationMethod, "SCRAM-SHA-25"),
                    .field(.authenticationData, [0x00, 0xFF]),
                ]
            }, "every property of CONNECT, the same user property name twice"),
        GoldenPacket5(
            "10 14 0004 4D515454 05 06 0000 00 0001 61 00 0001 77 0000",
            connect5("a") { $0.will = .init(topic: utf8("w"), message: []) },
            "a will of QoS 0 without properties, with an empty message"),
        GoldenPacket5(
            """
            10 46 0004 4D515454 05 36 0000 00 0001 61
              31 18 00000005 01 01 02 0000003C 03 0004 74657874 08 0003 722F74 09 0002 00FF
              26 0001 6B 0001 76 26 0001 6B 0001 76 26 0000 0000
              0001 77 0001 FF
            """,
            connect5("a") {
                $0.will = .init(
                    topic: utf8("w"), message: [0xFF], qos: .exactlyOnce, retain: true,
                    [
                        .number(.willDelayInterval, 5), .number(.payloadFormatIndicator, 1),
                        .number(.messageExpiryInterval, 60), .text(.contentType, "text"),
                        .text(.responseTopic, "r/t"), .field(.correlationData, [0x00, 0xFF]),
                        .user("k", "v"), .user("k", "v"), .user("", ""),
                    ])
            }, "every property of a will [trap 9]; the payload's UTF-8 is not looked at"),
        GoldenPacket5(
            "10 11 0004 4D515454 05 42 0000 00 0001 61 0001 70",
            connect5("a") { $0.password = utf8("p") },
            "a password without a user name [MQTT-3.1.2-19]"),
        GoldenPacket5(
            "10 14 0004 4D515454 05 C2 0000 00 0001 61 0000 0002 00FF",
            connect5("a") {
                $0.userName = []
                $0.password = [0x00, 0xFF]
            }, "an empty user name and a binary password"),
        GoldenPacket5(
            """
            10 27 0004 4D515454 05 F4 000A 05 11 0000001E 0002 6964
              05 18 0000000A 0001 77 0002 6869 0001 75 0001 70
            """,
            connect5("id") {
                $0.cleanStart = false
                $0.keepAlive = 10
                $0.properties = [.number(.sessionExpiryInterval, 30)]
                $0.will = .init(
                    topic: utf8("w"), message: utf8("hi"), qos: .exactlyOnce, retain: true,
                    [.number(.willDelayInterval, 10)])
                $0.userName = utf8("u")
                $0.password = utf8("p")
            }, "every field in its only order [MQTT-3.1.3-1]"),
        GoldenPacket5(
            "10 10 0004 4D515454 05 02 0000 00 0003 EFBBBF", connect5("\u{FEFF}"),
            "U+FEFF is a character like any other [MQTT-1.5.4-3]"),
    ]

    static let connacks: [GoldenPacket5] = [
        GoldenPacket5(
            "20 03 00 00 00", .connack(sessionPresent: false, .success, []), "a new session"),
        GoldenPacket5(
            "20 03 01 00 00", .connack(sessionPresent: true, .success, []), "a stored session"),
        GoldenPacket5(
            "20 03 00 87 00", .connack(sessionPresent: false, .notAuthorized, []), "a refusal"),
        GoldenPacket5(
            """
            20 41 00 00 3E 11 0000000A 21 0014 24 01 25 00 27 00010000 12 0002 6964 22 0005
              1F 0002 6F6B 28 00 29 00 2A 00 13 003C 1A 0001 69 1C 0001 68
              15 0001 6D 16 0001 00 26 0001 61 0001 62
            """,
            .connack(
                sessionPresent: false, .success,
                [
                    .number(.sessionExpiryInterval, 10), .number(.receiveMaximum, 20),
                    .number(.maximumQoS, 1), .number(.retainAvailable, 0),
                    .number(.maximumPacketSize, 65_536), .text(.assignedClientIdentifier, "id"),
                    .number(.topicAliasMaximum, 5), .text(.reasonString, "ok"),
                    .number(.wildcardSubscriptionAvailable, 0),
                    .number(.subscriptionIdentifiersAvailable, 0),
                    .number(.sharedSubscriptionAvailable, 0), .number(.serverKeepAlive, 60),
                    .text(.responseInformation, "i"), .text(.serverReference, "h"),
                    .text(.authenticationMethod, "m"), .field(.authenticationData, [0]),
                    .user("a", "b"),
                ]), "every property of CONNACK"),
        GoldenPacket5(
            "20 0A 00 9D 07 1C 0004 683A3138",
            .connack(sessionPresent: false, .serverMoved, [.text(.serverReference, "h:18")]),
            "a server that has moved"),
    ]

    static let publishes: [GoldenPacket5] = [
        GoldenPacket5(
            "30 04 0001 61 00", .publish(.init(topic: utf8("a"))), "the shortest PUBLISH"),
        GoldenPacket5(
            "31 06 0001 61 00 00FF",
            .publish(.init(topic: utf8("a"), payload: [0x00, 0xFF], retain: true)),
            "RETAIN, with a binary payload"),
        GoldenPacket5(
            "3A 06 0001 61 FFFF 00",
            .publish(.init(.atLeastOnce(65_535, isDuplicate: true), topic: utf8("a"))),
            "QoS 1 again, with the highest identifier"),
        GoldenPacket5(
            "34 06 0001 61 0100 00",
            .publish(.init(.exactlyOnce(256, isDuplicate: false), topic: utf8("a"))), "QoS 2"),
        GoldenPacket5(
            """
            32 32 0001 61 0007 2A 01 01 02 FFFFFFFF 23 0001 08 0003 722F74 09 0002 00FF
              26 0001 6B 0001 76 03 0004 74657874 26 0001 6B 0001 77 6869
            """,
            .publish(
                .init(
                    .atLeastOnce(7, isDuplicate: false), topic: utf8("a"),
                    [
                        .number(.payloadFormatIndicator, 1),
                        .number(.messageExpiryInterval, 0xFFFF_FFFF), .number(.topicAlias, 1),
                        .text(.responseTopic, "r/t"), .field(.correlationData, [0x00, 0xFF]),
                        .user("k", "v"), .text(.contentType, "text"), .user("k", "w"),
                    ], payload: utf8("hi"))),
            "every property of a client's PUBLISH, in an order of its own"),
        GoldenPacket5(
            "30 06 0000 03 23 FFFF",
            .publish(.init(topic: [], [.number(.topicAlias, 65_535)])),
            "an alias without a topic"),
        GoldenPacket5(
            "30 10 0001 61 0C 0B 01 0B 7F 0B 8001 0B FFFFFF7F",
            .publish(
                .init(
                    topic: utf8("a"),
                    [
                        .number(.subscriptionIdentifier, 1),
                        .number(.subscriptionIdentifier, 127),
                        .number(.subscriptionIdentifier, 128),
                        .number(.subscriptionIdentifier, 268_435_455),
                    ])),
            "several subscription identifiers, up to the largest [trap 45]"),
        GoldenPacket5(
            "30 06 0001 61 02 01 00",
            .publish(.init(topic: utf8("a"), [.number(.payloadFormatIndicator, 0)])),
            "payload format 0"),
        GoldenPacket5(
            "30 09 0001 61 05 02 00000000",
            .publish(.init(topic: utf8("a"), [.number(.messageExpiryInterval, 0)])),
            "expiry 0 is a value of its own [trap 27]"),
        GoldenPacket5(
            "30 07 0001 61 03 03 0000",
            .publish(.init(topic: utf8("a"), [.text(.contentType, "")])),
            "an empty content type"),
    ]

    static let acknowledgements: [GoldenPacket5] = [
        GoldenPacket5("40 02 0001", .puback(1, .success, []), "PUBACK of length 2"),
        GoldenPacket5("40 03 0001 10", .puback(1, .noMatchingSubscribers, []), "length 3: a code"),
        GoldenPacket5(
            "40 07 0001 00 03 1F 0000", .puback(1, .success, [.text(.reasonString, "")]),
            "properties need the code in front"),
        GoldenPacket5(
            "40 10 FFFF 97 0C 1F 0001 72 26 0001 61 0002 6263",
            .puback(65_535, .quotaExceeded, [.text(.reasonString, "r"), .user("a", "bc")]),
            "PUBACK with all its properties"),
        GoldenPacket5("50 02 0102", .pubrec(258, .success, []), "PUBREC"),
        GoldenPacket5("50 03 0102 80", .pubrec(258, .unspecifiedError, []), "a failing PUBREC"),
        GoldenPacket5(
            "62 02 0001", .pubrel(1, .success, []), "PUBREL carries flags 0010 [MQTT-3.6.1-1]"),
        GoldenPacket5(
            "62 03 0001 92", .pubrel(1, .packetIdentifierNotFound, []), "PUBREL of an unknown id"),
        GoldenPacket5("70 02 8000", .pubcomp(32_768, .success, []), "PUBCOMP"),
        GoldenPacket5(
            "70 0B 0001 92 07 26 0001 61 0001 62",
            .pubcomp(1, .packetIdentifierNotFound, [.user("a", "b")]), "PUBCOMP with a property"),
    ]

    static let subscriptions: [GoldenPacket5] = [
        GoldenPacket5(
            "82 07 000A 00 0001 61 00",
            .subscribe(10, [], [.init(utf8("a"), .init(qos: .atMostOnce))]), "one filter"),
        GoldenPacket5(
            "82 1B 0001 0C 0B FFFFFF7F 26 0001 61 0001 62 0001 23 2E 0001 2B 11 0001 61 08",
            .subscribe(
                1, [.number(.subscriptionIdentifier, 268_435_455), .user("a", "b")],
                [
                    .init(
                        utf8("#"),
                        .init(
                            qos: .exactlyOnce, noLocal: true, retainAsPublished: true,
                            retainHandling: .never)),
                    .init(utf8("+"), .init(qos: .atLeastOnce, retainHandling: .atNewSubscription)),
                    .init(utf8("a"), .init(qos: .atMostOnce, retainAsPublished: true)),
                ]), "every property and option"),
        GoldenPacket5(
            "82 10 0001 00 000A 2473686172652F672F61 01",
            .subscribe(1, [], [.init(utf8("$share/g/a"), .init(qos: .atLeastOnce))]),
            "a shared subscription"),
        GoldenPacket5(
            "82 0D 0001 00 0001 23 00 0003 612F23 05",
            .subscribe(
                1, [],
                [
                    .init(utf8("#"), .init(qos: .atMostOnce)),
                    .init(utf8("a/#"), .init(qos: .atLeastOnce, noLocal: true)),
                ]), "no local on a filter that is not shared"),
        GoldenPacket5("90 04 000A 00 00", .suback(10, [], [.success]), "SUBACK"),
        GoldenPacket5(
            "90 0F 000A 00 00 01 02 80 83 87 8F 91 97 9E A1 A2",
            .suback(
                10, [],
                [
                    .success, .grantedQoS1, .grantedQoS2, .unspecifiedError,
                    .implementationSpecificError, .notAuthorized, .topicFilterInvalid,
                    .packetIdentifierInUse, .quotaExceeded, .sharedSubscriptionsNotSupported,
                    .subscriptionIdentifiersNotSupported, .wildcardSubscriptionsNotSupported,
                ]), "every code of SUBACK"),
        GoldenPacket5(
            "90 0F 0001 0B 1F 0001 72 26 0001 61 0001 62 01",
            .suback(1, [.text(.reasonString, "r"), .user("a", "b")], [.grantedQoS1]),
            "SUBACK with all its properties"),
        GoldenPacket5(
            "A2 06 000A 00 0001 61", .unsubscribe(10, [], [utf8("a")]), "UNSUBSCRIBE"),
        GoldenPacket5(
            "A2 14 000A 07 26 0001 61 0001 62 0003 2B2F23 0003 612F62",
            .unsubscribe(10, [.user("a", "b")], [utf8("+/#"), utf8("a/b")]),
            "UNSUBSCRIBE with a property"),
        GoldenPacket5(
            "B0 0A 000A 00 00 11 80 83 87 8F 91",
            .unsuback(
                10, [],
                [
                    .success, .noSubscriptionExisted, .unspecifiedError,
                    .implementationSpecificError, .notAuthorized, .topicFilterInvalid,
                    .packetIdentifierInUse,
                ]), "every code of UNSUBACK [trap 52]"),
        GoldenPacket5(
            "B0 0F 0001 0B 1F 0001 72 26 0001 61 0001 62 11",
            .unsuback(1, [.text(.reasonString, "r"), .user("a", "b")], [.noSubscriptionExisted]),
            "UNSUBACK with all its properties"),
    ]

    static let others: [GoldenPacket5] = [
        GoldenPacket5("C0 00", .pingreq, "PINGREQ"),
        GoldenPacket5("D0 00", .pingresp, "PINGRESP"),
        GoldenPacket5("E0 00", .disconnect(.success, []), "DISCONNECT of length 0"),
        GoldenPacket5("E0 01 04", .disconnect(.disconnectWithWill, []), "length 1: a code"),
        GoldenPacket5(
            "E0 07 00 05 11 00000000",
            .disconnect(.success, [.number(.sessionExpiryInterval, 0)]),
            "a client that ends its session"),
        GoldenPacket5(
            "E0 12 04 10 11 FFFFFFFF 1F 0001 72 26 0001 61 0001 62",
            .disconnect(
                .disconnectWithWill,
                [
                    .number(.sessionExpiryInterval, 0xFFFF_FFFF), .text(.reasonString, "r"),
                    .user("a", "b"),
                ]), "every property of a client's DISCONNECT"),
        GoldenPacket5("E0 01 8E", .disconnect(.sessionTakenOver, []), "a take-over"),
        GoldenPacket5(
            "E0 11 9C 0F 1C 0001 68 1F 0001 72 26 0001 61 0001 62",
            .disconnect(
                .useAnotherServer,
                [.text(.serverReference, "h"), .text(.reasonString, "r"), .user("a", "b")]),
            "every property of a server's DISCONNECT"),
        GoldenPacket5("F0 00", .auth(.success, []), "AUTH of length 0"),
        GoldenPacket5(
            "F0 06 19 04 15 0001 6D",
            .auth(.reauthenticate, [.text(.authenticationMethod, "m")]), "re-authentication"),
        GoldenPacket5(
            "F0 15 18 13 15 0001 6D 16 0001 00 1F 0001 72 26 0001 61 0001 62",
            .auth(
                .continueAuthentication,
                [
                    .text(.authenticationMethod, "m"), .field(.authenticationData, [0]),
                    .text(.reasonString, "r"), .user("a", "b"),
                ]), "every property of AUTH"),
    ]
}
