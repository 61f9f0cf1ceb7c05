import CHermesProtos
import PlainText
import Testing

@testable import HermesMessages

@Suite("Messages on the wire")
struct EncodingTests {
    @Test("an order status update has exactly these bytes")
    func orderStatusUpdateGolden() throws {
        let update = OrderStatusUpdate(
            orderID: "o1", salesID: "s1", status: .approved, reason: "ok", updatedAtMs: 300,
            details: ["b": "2", "a": "1"])
        #expect(
            try update.encoded() == [
                0x0A, 2, 0x6F, 0x31,  // 1 order_id "o1"
                0x12, 2, 0x73, 0x31,  // 2 sales_id "s1"
                0x18, 4,  // 3 status APPROVED
                0x22, 2, 0x6F, 0x6B,  // 4 reason "ok"
                0x28, 0xAC, 0x02,  // 5 updated_at_ms 300
                0x32, 6, 0x0A, 1, 0x61, 0x12, 1, 0x31,  // 6 details "a": "1"
                0x32, 6, 0x0A, 1, 0x62, 0x12, 1, 0x32,  // 6 details "b": "2"
            ])
    }

    @Test("default values take no bytes")
    func defaultsAreAbsent() throws {
        let update = OrderStatusUpdate(
            orderID: "", salesID: "", status: .unspecified, updatedAtMs: 0)
        #expect(try update.encoded() == [])
    }

    @Test("an envelope has exactly these bytes")
    func envelopeGolden() throws {
        let envelope = Envelope(
            messageID: "m", topic: "t", channel: "c", publishedAtMs: 1, expiresAtMs: 2,
            contentType: "x", payload: [0, 255])
        #expect(
            try envelope.encoded() == [
                0x0A, 1, 0x6D,  // 1 message_id
                0x12, 1, 0x74,  // 2 topic
                0x1A, 1, 0x63,  // 3 channel
                0x20, 1,  // 4 published_at_ms
                0x28, 2,  // 5 expires_at_ms
                0x3A, 1, 0x78,  // 7 content_type
                0x42, 2, 0x00, 0xFF,  // 8 payload
            ])
    }

    @Test("a sequence appended to the encoded envelope is read as its sequence")
    func appendedSequence() throws {
        var bytes = try sample.encoded()
        bytes += [Envelope.sequenceTag, 0x85, 0x01]
        try withUnpackedEnvelope(bytes) { envelope in
            #expect(envelope.sequence == 133)
            #expect(envelope.n_supersedes_sequence == 0)
            #expect(String(cString: envelope.message_id) == sample.messageID)
        }
    }

    @Test("superseded sequences behind it are read as such, each a field of its own")
    func appendedSuperseded() throws {
        var bytes = try sample.encoded()
        let tag = Envelope.sequenceTag + 1 << 3
        bytes += [Envelope.sequenceTag, 0x05, tag, 0x03, tag, 0x85, 0x01]
        try withUnpackedEnvelope(bytes) { envelope in
            #expect(envelope.sequence == 5)
            let superseded = UnsafeBufferPointer(
                start: envelope.supersedes_sequence, count: envelope.n_supersedes_sequence)
            #expect(Array(superseded) == [3, 133])
        }
    }

    @Test("sequence and supersedes_sequence are the last fields of the schema")
    func sequenceIsLast() throws {
        let descriptor = hermes__v1__envelope__descriptor
        let fields = (0..<Int(descriptor.n_fields)).map { descriptor.fields[$0] }
        let names = fields.sorted { $0.id < $1.id }.map { String(cString: $0.name) }
        #expect(names.suffix(2) == ["sequence", "supersedes_sequence"])
        let sequence = try #require(fields.first { String(cString: $0.name) == "sequence" })
        #expect(Envelope.sequenceTag == UInt8(sequence.id << 3))
        #expect(sequence.type == PROTOBUF_C_TYPE_UINT64)
    }

    @Test("every field survives the way through protobuf-c and back")
    func roundTrip() throws {
        let update = OrderStatusUpdate(
            orderID: "A-17", salesID: "销售-9", status: .supplementRequired,
            reason: "line\nbreak, emoji 🚚", updatedAtMs: 1_763_700_000_123,
            details: ["": "empty key", "note": "", "ключ": "значение"])
        var envelope = sample
        envelope.payload = try update.encoded()
        try withUnpackedEnvelope(try envelope.encoded()) { unpacked in
            #expect(String(cString: unpacked.topic) == envelope.topic)
            #expect(String(cString: unpacked.channel) == envelope.channel)
            #expect(unpacked.published_at_ms == envelope.publishedAtMs)
            #expect(unpacked.expires_at_ms == 0)
            #expect(String(cString: unpacked.content_type) == OrderStatusUpdate.contentType)
            let payload = Array(
                UnsafeBufferPointer(start: unpacked.payload.data, count: unpacked.payload.len))
            #expect(payload == envelope.payload)
        }
        let unpacked = try #require(
            hermes__v1__order_status_update__unpack(nil, envelope.payload.count, envelope.payload))
        defer { hermes__v1__order_status_update__free_unpacked(unpacked, nil) }
        #expect(String(cString: unpacked.pointee.order_id) == update.orderID)
        #expect(String(cString: unpacked.pointee.sales_id) == update.salesID)
        #expect(unpacked.pointee.status.rawValue == 3)
        #expect(String(cString: unpacked.pointee.reason) == update.reason)
        #expect(unpacked.pointee.updated_at_ms == update.updatedAtMs)
        var details: [ForeignText: String] = [:]
        for index in 0..<unpacked.pointee.n_details {
            let entry = try #require(unpacked.pointee.details[index])
            details[ForeignText(String(cString: entry.pointee.key))] = String(
                cString: entry.pointee.value)
        }
        #expect(details == update.details)
    }

    @Test("large and many values are encoded whole")
    func large() throws {
        var envelope = sample
        envelope.payload = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        try withUnpackedEnvelope(try envelope.encoded()) { unpacked in
            #expect(
                UnsafeBufferPointer(start: unpacked.payload.data, count: unpacked.payload.len)
                    .elementsEqual(envelope.payload))
        }
    }

    @Test("a text with NUL is refused rather than cut")
    func nulIsRefused() {
        var envelope = sample
        envelope.topic = "a\0b"
        #expect(throws: MessageEncodingError.containsNUL(field: "topic")) {
            try envelope.encoded()
        }
        let update = OrderStatusUpdate(
            orderID: "o", salesID: "s", status: .signed, updatedAtMs: 1, details: ["k": "v\0"])
        #expect(throws: MessageEncodingError.containsNUL(field: "details")) {
            try update.encoded()
        }
    }

    private let sample = Envelope(
        messageID: "019a-1", topic: "orders/s1/o1/status", channel: "orders/s1",
        publishedAtMs: 1_763_700_000_000, contentType: OrderStatusUpdate.contentType,
        payload: [1, 2, 3])

    /// Reads the bytes with protobuf-c; the structure is valid inside the closure only.
    private func withUnpackedEnvelope(
        _ bytes: [UInt8], _ body: (Hermes__V1__Envelope) throws -> Void
    ) throws {
        let unpacked = try #require(hermes__v1__envelope__unpack(nil, bytes.count, bytes))
        defer { hermes__v1__envelope__free_unpacked(unpacked, nil) }
        try body(unpacked.pointee)
    }
}
