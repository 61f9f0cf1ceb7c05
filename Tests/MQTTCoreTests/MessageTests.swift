import HermesTesting
import MQTTCodec
import Testing

@testable import MQTTCore
@testable import Structures

extension TestPool {
    /// Empties an output queue, as sending does.
    func takeAll(_ output: inout OutputQueue) -> [UInt8] {
        var bytes: [UInt8] = []
        let room = UnsafeMutablePointer<OutputQueue.Segment>.allocate(capacity: 8)
        defer { room.deallocate() }
        room.initialize(repeating: OutputQueue.Segment(), count: 8)
        while !output.isEmpty {
            var taken = 0
            for index in 0..<output.fill(room, capacity: 8) {
                bytes += UnsafeRawBufferPointer(start: room[index].base, count: room[index].count)
                taken += room[index].count
            }
            output.consume(taken, pool: pool)
        }
        return bytes
    }
}

@Suite("Message")
struct MessageTests {
    static let sizes = [0, 1, 100, 125, 126, 127, 16_383, 16_384, 16_385, 70_000]

    @Test(
        "decodes as it was published, at every QoS, as a first send and as a re-send",
        arguments: sizes)
    func images(size: Int) throws {
        let owner = TestPool()
        var random = SplitMix64(seed: UInt64(size))
        for topic in ["t", "orders/1/status", String(repeating: "x", count: 3_000)] {
            let payload = random.bytes(size)
            let message = owner.message(topic, payload: payload)
            defer { message.release(in: owner.pool) }
            for qos in QoS.allCases {
                for retain in [false, true] {
                    for isDuplicate in [false, true] {
                        var output = OutputQueue()
                        message.append(
                            to: &output, qos: qos, retain: retain, isDuplicate: isDuplicate,
                            packetIdentifier: 0xABCD, pool: owner.pool)
                        let expected = PacketContent.publish(
                            .init(
                                delivery(qos, isDuplicate), topic: topic, payload: payload,
                                retain: retain))
                        let bytes = owner.takeAll(&output)
                        #expect(try PacketContent.decode(bytes) == [expected])
                        #expect(bytes == (try expected.encoded()))
                    }
                }
            }
        }
    }

    /// QoS 0 never has DUP [MQTT-3.3.1-2].
    private func delivery(_ qos: QoS, _ isDuplicate: Bool) -> Delivery {
        switch qos {
        case .atMostOnce: .atMostOnce
        case .atLeastOnce: .atLeastOnce(0xABCD, isDuplicate: isDuplicate)
        case .exactlyOnce: .exactlyOnce(0xABCD, isDuplicate: isDuplicate)
        }
    }

    @Test(
        "several receivers' packets stand one behind another, unharmed by each other",
        arguments: sizes)
    func manyReceivers(size: Int) throws {
        let owner = TestPool()
        let payload = [UInt8](repeating: 0x5C, count: size)
        let message = owner.message("a/b", payload: payload)
        var output = OutputQueue()
        var expected: [PacketContent] = []
        for identifier in 1...5 {
            let qos = QoS.allCases[identifier % 3]
            let isDuplicate = identifier == 4
            message.append(
                to: &output, qos: qos, retain: false, isDuplicate: isDuplicate,
                packetIdentifier: UInt16(identifier), pool: owner.pool)
            let packet = PacketIdentifier(position: UInt64(identifier) - 1)
            let delivery: Delivery =
                switch qos {
                case .atMostOnce: .atMostOnce
                case .atLeastOnce: .atLeastOnce(packet, isDuplicate: isDuplicate)
                case .exactlyOnce: .exactlyOnce(packet, isDuplicate: isDuplicate)
                }
            expected.append(.publish(.init(delivery, topic: "a/b", payload: payload)))
        }
        // Queued bytes outlive the message.
        message.release(in: owner.pool)
        #expect(try PacketContent.decode(owner.takeAll(&output)) == expected)
    }

    @Test("a large payload is not copied for each receiver")
    func sharing() {
        let owner = TestPool()
        let message = owner.message(payload: [UInt8](repeating: 1, count: 60_000))
        let index = BytePool.classIndex(for: message.count)
        var outputs = [OutputQueue](repeating: OutputQueue(), count: 20)
        for receiver in outputs.indices {
            message.append(
                to: &outputs[receiver], qos: QoS.allCases[receiver % 3], retain: false,
                isDuplicate: false, packetIdentifier: 1, pool: owner.pool)
        }
        message.release(in: owner.pool)
        for receiver in outputs.indices {
            #expect(owner.pool.classes[index].freeCount == 0)
            outputs[receiver].removeAll(in: owner.pool)
        }
        #expect(owner.pool.classes[index].freeCount == 1, "one buffer for all")
    }

    @Test("a suffix is a part of the payload", arguments: [0, 1, 126, 16_380, 16_384])
    func suffix(size: Int) throws {
        let owner = TestPool()
        let payload = [UInt8](repeating: 3, count: size)
        let suffix: [UInt8] = [0x08, 0x96, 0x01]
        let message = Array("t".utf8).withUnsafeBytes { topic in
            payload.withUnsafeBytes { payload in
                suffix.withUnsafeBytes { suffix in
                    Message(
                        topic: topic, payload: payload, suffix: suffix, qos: .exactlyOnce,
                        retain: true, expiresAtMs: 5, pool: owner.pool)
                }
            }
        }
        #expect([UInt8](message.payload) == payload + suffix)
        var output = OutputQueue()
        message.append(
            to: &output, qos: .atLeastOnce, retain: false, isDuplicate: false,
            packetIdentifier: 1, pool: owner.pool)
        message.release(in: owner.pool)
        let expected = PacketContent.publish(
            .init(.atLeastOnce(1, isDuplicate: false), topic: "t", payload: payload + suffix))
        #expect(try PacketContent.decode(owner.takeAll(&output)) == [expected])
    }

    @Test("keeps its publisher's values, and the bytes that a queue counts")
    func properties() {
        let owner = TestPool()
        let message = owner.message("a/b", payload: [1, 2, 3], qos: .exactlyOnce, retain: true)
        defer { message.release(in: owner.pool) }
        #expect(message.qos == .exactlyOnce && message.retain)
        #expect(String(decoding: message.topic, as: UTF8.self) == "a/b")
        #expect([UInt8](message.payload) == [1, 2, 3])
        #expect(message.count == 2 + 2 + 3 + 2 + 3)
    }

    @Test(
        "keeps 255 bytes of an identifier, which no receiver gets and no queue counts",
        arguments: [1, 36, 255, 256], [0, 10, 60_000])
    func identifier(count: Int, size: Int) throws {
        let owner = TestPool()
        let payload = [UInt8](repeating: 3, count: size)
        let identifier = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let message = payload.withUnsafeBytes { payload in
            identifier.withUnsafeBytes { identifier in
                Message(
                    topic: UnsafeRawBufferPointer(start: nil, count: 0), payload: payload,
                    qos: .exactlyOnce, retain: false, messageID: identifier, pool: owner.pool)
            }
        }
        let plain = owner.message("", payload: payload, qos: .exactlyOnce)
        #expect([UInt8](message.messageID) == Array(identifier.prefix(255)))
        #expect([UInt8](message.payload) == payload)
        #expect((message.count, message.copiedBytes) == (plain.count, plain.copiedBytes))
        #expect(plain.messageID.isEmpty)
        for qos in [QoS.atMostOnce, .exactlyOnce] {
            let sent = [message, plain].map { message in
                var output = OutputQueue()
                message.append(
                    to: &output, qos: qos, retain: false, isDuplicate: false, packetIdentifier: 1,
                    pool: owner.pool)
                return owner.takeAll(&output)
            }
            #expect(sent[0] == sent[1])
        }
        message.release(in: owner.pool)
        plain.release(in: owner.pool)
    }

    @Test("a topic of 65,535 bytes fits")
    func longestTopic() throws {
        let owner = TestPool()
        let topic = String(repeating: "y", count: 65_535)
        let message = owner.message(topic, payload: [])
        defer { message.release(in: owner.pool) }
        #expect(message.topic.count == 65_535 && message.payload.isEmpty)
        var output = OutputQueue()
        message.append(
            to: &output, qos: .exactlyOnce, retain: true, isDuplicate: true,
            packetIdentifier: 65_535, pool: owner.pool)
        let expected = PacketContent.publish(
            .init(.exactlyOnce(65_535, isDuplicate: true), topic: topic, retain: true))
        #expect(try PacketContent.decode(owner.takeAll(&output)) == [expected])
    }

    @Test("expires at its time and not before, and never without one")
    func expiry() {
        let owner = TestPool()
        func message(_ expiresAtMs: Int64) -> Message {
            Message(
                topic: UnsafeRawBufferPointer(start: nil, count: 0),
                payload: UnsafeRawBufferPointer(start: nil, count: 0), qos: .atMostOnce,
                retain: false, expiresAtMs: expiresAtMs, pool: owner.pool)
        }
        let mortal = message(1_000)
        #expect(!mortal.isExpired(atMs: 999))
        #expect(mortal.isExpired(atMs: 1_000))
        #expect(mortal.expiresAtMs == 1_000)
        let immortal = message(0)
        #expect(!immortal.isExpired(atMs: .max))
        mortal.release(in: owner.pool)
        immortal.release(in: owner.pool)
    }
}
