import MQTTCodec
import Testing

@testable import hermes_bench

@Suite("LoadPlan and its packets")
struct PlanTests {
    private func plan(_ shape: LoadPlan.Shape) -> LoadPlan {
        LoadPlan(
            shape: shape, pace: .window(1), extent: .messages(perPublisher: 1), qos: .atLeastOnce,
            payloadBytes: 64, subscribersPersist: false, acknowledgeAfter: 0, patience: 1)
    }

    @Test("every publisher and subscriber that are joined have a stream of their own")
    func streams() {
        for shape in [
            LoadPlan.Shape.pairs(3), .fanOut(subscribers: 4), .fanIn(publishers: 5),
        ] {
            let plan = plan(shape)
            var seen: Set<Int> = []
            for publisher in 0..<plan.publishers {
                let streams = (0..<plan.subscribers).compactMap {
                    plan.stream(publisher: publisher, subscriber: $0)
                }
                #expect(streams.count == plan.receiversPerMessage)
                for stream in streams { #expect(seen.insert(stream).inserted) }
            }
            #expect(seen == Set(0..<plan.streams))
        }
    }

    @Test("a publisher that does not exist reaches nobody")
    func strangers() {
        #expect(plan(.pairs(3)).stream(publisher: 3, subscriber: 0) == nil)
        #expect(plan(.pairs(3)).stream(publisher: 1, subscriber: 0) == nil)
        #expect(plan(.fanOut(subscribers: 3)).stream(publisher: 1, subscriber: 0) == nil)
    }

    @Test("a written message decodes to its topic, identifier and stamp", arguments: QoS.allCases)
    func template(qos: QoS) throws {
        let names = RunNames()
        let templates = PublishTemplates(publishers: 3, names: names, payloadBytes: 40, qos: qos)
        let packet = UnsafeMutableRawBufferPointer.allocate(
            byteCount: templates.packetBytes, alignment: 1)
        defer { packet.deallocate() }
        let base = try #require(packet.baseAddress)
        templates.write(publisher: 2, sequence: 12, position: 65_536, time: 77, to: base)

        let bytes = UnsafeRawBufferPointer(packet)
        let framing = try PacketDecoder.frame(bytes.bytes, at: 0, maximumSize: 1_000)
        guard case .frame(let frame) = framing,
            case .publish(let publish) = try ClientPackets.decode(frame, bytes)
        else {
            Issue.record("no PUBLISH: \(framing)")
            return
        }
        #expect(frame.packet.end == bytes.count)
        #expect(Array(bytes[publish.topic.range]) == names.topic(2))
        #expect(publish.delivery.qos == qos)
        switch publish.delivery {
        case .atMostOnce: break
        case .atLeastOnce(let identifier, let duplicate),
            .exactlyOnce(let identifier, let duplicate):
            #expect(identifier.rawValue == 2)
            #expect(!duplicate)
        }
        let stamp = try #require(MessageStamp(bytes[publish.payload]))
        #expect(stamp.run == names.run)
        #expect(stamp.publisher == 2)
        #expect(stamp.sequence == 12)
        #expect(stamp.time == 77)
        #expect(publish.payload.count == 40)
    }

    @Test("an identifier is held once until it is released, per subscriber")
    func heldIdentifiers() throws {
        var held = HeldIdentifiers(subscribers: 2)
        for value in [UInt16(1), 64, 65_535] {
            let identifier = try #require(PacketIdentifier(value))
            let isNew = held.hold(identifier, subscriber: 1)
            let isNewAgain = held.hold(identifier, subscriber: 1)
            let isNewElsewhere = held.hold(identifier, subscriber: 0)
            held.release(identifier, subscriber: 1)
            let isNewAfterRelease = held.hold(identifier, subscriber: 1)
            #expect(isNew && !isNewAgain && isNewElsewhere && isNewAfterRelease)
        }
    }

    @Test("names of a run are equally long, so that one template fits all")
    func nameLengths() {
        let names = RunNames()
        #expect(names.topic(0).count == names.topic(31_999).count)
        #expect(names.clientID("s", 0).count == names.clientID("p", 31_999).count)
    }
}

@Suite("What people read and write")
struct TextTests {
    @Test(
        "numbers keep their places",
        arguments: [
            (0.0, 2, "0.00"), (1_234_567.891, 1, "1,234,567.9"), (0.999, 2, "1.00"),
            (-0.5, 1, "-0.5"), (999.5, 0, "1,000"), (.nan, 2, "-"), (.infinity, 0, "-"),
        ])
    func fixed(value: Double, digits: Int, expected: String) {
        #expect(Text.fixed(value, digits: digits) == expected)
    }

    @Test("JSON escapes what it must")
    func json() {
        let value = JSONValue.object([
            ("a\"\n", .array([.integer(-1), .number(0.5), .number(.nan), .bool(true), .null]))
        ])
        #expect(
            value.text() == """
                {
                  "a\\"\\u000a": [
                    -1,
                    0.5,
                    null,
                    true,
                    null
                  ]
                }
                """)
    }

    @Test(
        "only this machine is loaded",
        arguments: [
            "10.0.0.1", "0.0.0.0", "128.0.0.1", "broker.invalid", "::1", "", "127.0.0.1 ",
        ])
    func foreignHosts(host: String) {
        #expect(throws: BenchFailure.self) { try BrokerAddress(host: host, port: 1883) }
    }

    @Test("loopback addresses are taken", arguments: ["127.0.0.1", "localhost", "127.8.9.10"])
    func loopbackHosts(host: String) throws {
        #expect(try BrokerAddress(host: host, port: 1883).address >> 24 == 127)
    }
}
