import HermesClientCore
import HermesClientMessages
import Testing

@Suite("Reading messages")
struct MessageReaderTests {
    private static let sample = SampleEnvelope(
        messageID: "m-1", topic: "orders/7/4711/status", channel: "orders/7",
        publishedAtMs: 1_795_471_877_326, contentType: OrderStatusReader.contentType,
        payload: SampleUpdate(orderID: "4711", status: 4).encoded, sequence: 9, superseded: [7, 8])

    private static func facts(_ sample: SampleEnvelope, topic: String? = nil) -> MessageFacts? {
        MessageReader.facts(topic: Array((topic ?? sample.topic).utf8), payload: sample.encoded)
    }

    @Test("an envelope with channel and sequence is told apart by them")
    func sequenced() {
        #expect(
            Self.facts(Self.sample)
                == .sequenced(
                    SequenceNumbers(
                        channel: Array("orders/7".utf8), sequence: 9,
                        publishedAtMilliseconds: 1_795_471_877_326, superseded: [7, 8])))
    }

    @Test("one without either by its name")
    func named() {
        var unnumbered = Self.sample
        unnumbered.sequence = 0
        #expect(Self.facts(unnumbered) == .named(Array("m-1".utf8)))
        var unchanneled = Self.sample
        unchanneled.channel = ""
        #expect(Self.facts(unchanneled) == .named(Array("m-1".utf8)))
    }

    @Test("a payload that does not repeat its topic, or has no name, is no envelope")
    func others() {
        #expect(Self.facts(Self.sample, topic: "orders/7/4712/status") == nil)
        var nameless = Self.sample
        nameless.messageID = ""
        #expect(Self.facts(nameless) == nil)
        #expect(MessageReader.facts(topic: [], payload: []) == nil)
        let topic = Array(Self.sample.topic.utf8)
        #expect(MessageReader.facts(topic: topic, payload: Array("{\"a\":1}".utf8)) == nil)
    }

    @Test("names that are no UTF-8 make no envelope")
    func invalidText() {
        var writer = FieldWriter(encoded: Self.sample.encoded)
        writer.element(1, [0xFF, 0xFE])
        let topic = Array(Self.sample.topic.utf8)
        #expect(MessageReader.envelope(topic: topic, payload: writer.encoded) == nil)
    }

    @Test("an order status becomes proto3's JSON, whatever its number")
    func json() throws {
        let update = SampleUpdate(
            orderID: "4711", salesID: "7", status: 4, updatedAtMs: 1_795_471_877_326,
            details: [("a", "\"b\"")])
        func read(_ sample: SampleUpdate) throws -> String? {
            OrderStatusReader.json(
                try #require(
                    OrderStatusReader.update(
                        contentType: OrderStatusReader.contentType, payload: sample.encoded)))
        }
        #expect(
            try read(update) == """
                {"orderId":"4711","salesId":"7","status":"ORDER_STATUS_APPROVED",\
                "updatedAtMs":"1795471877326","details":{"a":"\\"b\\""}}
                """)
        #expect(try read(SampleUpdate(status: 99)) == #"{"status":99}"#)
        #expect(
            OrderStatusReader.update(contentType: "text/plain", payload: update.encoded) == nil)
    }

    @Test("every beginning of an envelope, and every byte of it changed, is read or refused")
    func damaged() {
        let topic = Array(Self.sample.topic.utf8)
        let bytes = Self.sample.encoded
        for end in bytes.indices {
            let facts = MessageReader.facts(topic: topic, payload: Array(bytes[..<end]))
            // What is cut between two fields is an envelope without the rest.
            if case .sequenced(let numbers)? = facts { #expect(numbers.sequence == 9) }
        }
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                _ = MessageReader.facts(topic: topic, payload: changed)
            }
        }
    }

    @Test("lengths beyond the end and deep groups are refused")
    func hostile() {
        let topic = Array(Self.sample.topic.utf8)
        for length: UInt64 in [1, 1 << 20, UInt64(UInt32.max), UInt64(Int64.max), .max] {
            var writer = FieldWriter(encoded: Self.sample.encoded)
            writer.tag(8, wireType: 2)
            writer.varint(length)
            #expect(MessageReader.envelope(topic: topic, payload: writer.encoded) == nil)
        }
        var groups = FieldWriter(encoded: Self.sample.encoded)
        for _ in 0..<500_000 { groups.tag(9, wireType: 3) }
        #expect(MessageReader.envelope(topic: topic, payload: groups.encoded) == nil)
    }

    @Test("random bytes are no envelope")
    func random() {
        // The same bytes in each run.
        var state: UInt64 = 1
        func next() -> UInt8 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        for _ in 0..<20_000 {
            let bytes = (0..<Int(next() & 63)).map { _ in next() }
            #expect(MessageReader.facts(topic: [0x61], payload: bytes) == nil, "\(bytes)")
        }
    }
}
