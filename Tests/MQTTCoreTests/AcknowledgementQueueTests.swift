import HermesTesting
import MQTTCodec
import Testing

@testable import MQTTCore
@testable import Structures

@Suite("Acknowledgement queue")
struct AcknowledgementQueueTests {
    @Test("lets acknowledgements out in order, none before its commit", arguments: UInt64(1)...32)
    func model(seed: UInt64) {
        let owner = TestPool()
        var before: [Int] = []
        for round in 0..<4 {
            var random = SplitMix64(seed: seed)
            run(owner, &random, seed)
            if round > 1 { #expect(owner.freeCounts == before, "a leak, seed \(seed)") }
            before = owner.freeCounts
        }
    }

    private func run(_ owner: TestPool, _ random: inout SplitMix64, _ seed: UInt64) {
        var queue = AcknowledgementQueue()
        var output = OutputQueue()
        var model: [(ticket: UInt64, bytes: [UInt8], requestBytes: Int)] = []
        var expected: [UInt8] = []
        var committed: Set<UInt64> = []
        for _ in 0..<400 {
            let ticket = random.once(in: 4) ? 0 : UInt64(random.number(in: 1...30))
            switch random.number(in: 0...5) {
            case 0...1:
                let word = PacketEncoder.fourBytes(
                    random.pick([.puback, .pubrec, .pubcomp]),
                    PacketIdentifier(position: UInt64(random.number(in: 0...65_534))))
                let bytes = random.once(in: 3) ? 0 : random.number(in: 1...5_000)
                queue.append(word: word, ticket: ticket, requestBytes: bytes, pool: owner.pool)
                model.append(
                    (ticket, withUnsafeBytes(of: word.littleEndian) { [UInt8]($0) }, bytes))
            case 2:
                let packet = [0x90, 4, 0, 1] + random.bytes(random.number(in: 1...60))
                let shared = SharedBytes(count: packet.count, pool: owner.pool)
                shared.bytes.copyMemory(from: packet, byteCount: packet.count)
                let bytes = random.once(in: 3) ? 0 : random.number(in: 1...5_000)
                queue.append(
                    packet: shared, ticket: ticket, requestBytes: bytes, pool: owner.pool)
                model.append((ticket, packet, bytes))
            case 3: committed.insert(UInt64(random.number(in: 1...30)))
            case 4 where random.once(in: 20):
                queue.removeAll(in: owner.pool)
                model.removeAll()
            default:
                queue.release(to: &output, pool: owner.pool) { committed.contains($0) }
                while let first = model.first, first.ticket == 0 || committed.contains(first.ticket)
                {
                    expected += first.bytes
                    model.removeFirst()
                }
            }
            if random.once(in: 40) { committed.removeAll() }
            #expect(queue.isEmpty == model.isEmpty)
            #expect(Int(queue.requests) == model.count { $0.requestBytes > 0 })
            #expect(queue.requestBytes == model.reduce(0) { $0 + $1.requestBytes })
            #expect(output.count == expected.count)
        }
        #expect(owner.takeAll(&output) == expected, "replay with seed \(seed)")
        queue.removeAll(in: owner.pool)
        #expect(queue.isEmpty && queue.requests == 0 && queue.requestBytes == 0)
    }

    @Test("one that is ready waits behind one that is not [MQTT-4.6.0-2]")
    func order() {
        let owner = TestPool()
        var queue = AcknowledgementQueue()
        var output = OutputQueue()
        queue.append(word: PacketEncoder.fourBytes(.puback, 1), ticket: 9, pool: owner.pool)
        queue.append(word: PacketEncoder.fourBytes(.puback, 2), ticket: 8, pool: owner.pool)
        queue.append(word: PacketEncoder.fourBytes(.pubrec, 3), ticket: 0, pool: owner.pool)
        queue.release(to: &output, pool: owner.pool) { $0 == 8 }
        #expect(output.isEmpty && !queue.isEmpty)
        queue.release(to: &output, pool: owner.pool) { _ in true }
        #expect(
            WireBytes(owner.takeAll(&output)) == "40 02 0001 40 02 0002 50 02 0003")
        #expect(queue.isEmpty)
    }
}

@Suite("Inbound QoS 2 identifiers")
struct InboundQoS2Tests {
    @Test("agree with a set", arguments: UInt64(1)...16)
    func model(seed: UInt64) {
        let owner = TestPool()
        var before: [Int] = []
        for round in 0..<4 {
            var random = SplitMix64(seed: seed)
            var identifiers = InboundQoS2()
            var model: Set<UInt16> = []
            for _ in 0..<600 {
                let value = UInt16(random.number(in: 1...120))
                let identifier = PacketIdentifier(position: UInt64(value) - 1)
                #expect(identifiers.contains(identifier) == model.contains(value), "seed \(seed)")
                if random.once(in: 2), !model.contains(value) {
                    identifiers.insert(identifier, pool: owner.pool)
                    model.insert(value)
                } else {
                    let wasThere = model.remove(value) != nil
                    #expect(identifiers.remove(identifier, pool: owner.pool) == wasThere)
                }
                #expect(Int(identifiers.count) == model.count)
            }
            identifiers.removeAll(in: owner.pool)
            #expect(identifiers.count == 0)
            #expect(!identifiers.contains(1))
            if round > 1 { #expect(owner.freeCounts == before, "a leak, seed \(seed)") }
            before = owner.freeCounts
        }
    }

    @Test("all 65,535 of them fit, and an empty set holds no memory")
    func all() {
        let owner = TestPool()
        var identifiers = InboundQoS2()
        for position in UInt64(0)..<65_535 {
            identifiers.insert(PacketIdentifier(position: position), pool: owner.pool)
        }
        #expect(identifiers.count == 65_535)
        #expect(identifiers.contains(65_535))
        identifiers.removeAll(in: owner.pool)
        let free = owner.freeCounts
        identifiers.insert(7, pool: owner.pool)
        #expect(owner.freeCounts != free)
        identifiers.remove(7, pool: owner.pool)
        #expect(owner.freeCounts == free)
    }
}
