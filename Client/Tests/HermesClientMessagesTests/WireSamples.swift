/// Messages of `Protos/hermes/v1` as values and as bytes, the bytes written by hand.
///
/// The broker encodes with protobuf-c and the client with SwiftProtobuf. The tests of both compare
/// their library with these samples; so they agree with each other.
enum WireSamples {
    /// Values whose varints have every length, with the limits of their types.
    static let numbers: [UInt64] = {
        let limits: [UInt64] = [0, .max, UInt64(Int64.max), 1 << 63, UInt64(UInt32.max)]
        let lengths = (1...9).map { (bytes: Int) -> UInt64 in 1 << UInt64(7 * bytes) }
        return limits + lengths + lengths.map { $0 - 1 }
    }()
    static let texts = [
        "", "a", "orders/s-42/o-1001/status", "line\nbreak", "\u{1F69A} 销售 ключ", "e\u{301}",
        "\u{FFFD}\u{10FFFF}", String(repeating: "x", count: 127),
        String(repeating: "y", count: 128),
        String(repeating: "ж", count: 20_000),
    ]

    static let envelopes: [SampleEnvelope] =
        [SampleEnvelope()]
        + numbers.indices.map { index in
            let number = numbers[index]
            func text(_ step: Int) -> String { texts[(index + step) % texts.count] }
            return SampleEnvelope(
                messageID: text(0), topic: text(1), channel: text(2),
                publishedAtMs: Int64(truncatingIfNeeded: number),
                expiresAtMs: Int64(truncatingIfNeeded: ~number), collapseKey: text(3),
                contentType: text(4),
                payload: (0..<(index * 37)).map { UInt8(truncatingIfNeeded: $0) },
                sequence: number, superseded: Array(numbers.prefix(index)))
        }

    static let updates: [SampleUpdate] =
        [SampleUpdate()]
        + numbers.indices.map { index in
            func text(_ step: Int) -> String { texts[(index + step) % texts.count] }
            // Also numbers of statuses to come, and those of no status.
            let statuses: [Int32] = [0, 1, 8, 9, 127, 128, .max, -1, .min]
            return SampleUpdate(
                orderID: text(0), salesID: text(1), status: statuses[index % statuses.count],
                reason: text(2), updatedAtMs: Int64(truncatingIfNeeded: numbers[index]),
                details: (0..<(index % 4)).map { ("\($0)\(text($0))", text($0 + 5)) })
        }

    static let reports: [SampleReport] =
        [SampleReport()]
        + numbers.indices.map { index in
            func number(_ step: Int) -> UInt64 { numbers[(index + step) % numbers.count] }
            return SampleReport(
                received: number(0), duplicates: number(1),
                losses: (0..<(index % 4)).map { ("\($0)\(texts[$0])", number($0 + 2)) },
                connects: number(5), heartbeatSeconds: UInt32(truncatingIfNeeded: number(6)),
                sinceMs: Int64(truncatingIfNeeded: number(7)),
                network: texts[index % texts.count], lostConnections: number(8),
                lostSessions: number(9), droppedAtMostOnce: number(10), published: number(11))
        }

    /// Fields of numbers that no schema has, one of each wire type.
    static let unknownFields: [UInt8] = {
        var writer = FieldWriter()
        writer.number(1_000, .max)
        writer.bytes(1_001, [1, 2, 3])
        writer.tag(1_002, wireType: 1)
        writer.encoded += [1, 2, 3, 4, 5, 6, 7, 8]
        writer.tag(1_003, wireType: 5)
        writer.encoded += [1, 2, 3, 4]
        return writer.encoded
    }()
}

/// `hermes.v1.Envelope`
struct SampleEnvelope: Equatable {
    var messageID = ""
    var topic = ""
    var channel = ""
    var publishedAtMs: Int64 = 0
    var expiresAtMs: Int64 = 0
    var collapseKey = ""
    var contentType = ""
    var payload: [UInt8] = []
    var sequence: UInt64 = 0
    var superseded: [UInt64] = []

    var encoded: [UInt8] {
        var writer = FieldWriter()
        writer.text(1, messageID)
        writer.text(2, topic)
        writer.text(3, channel)
        writer.number(4, UInt64(bitPattern: publishedAtMs))
        writer.number(5, UInt64(bitPattern: expiresAtMs))
        writer.text(6, collapseKey)
        writer.text(7, contentType)
        writer.bytes(8, payload)
        writer.number(14, sequence)
        for number in superseded { writer.element(15, number) }
        return writer.encoded
    }

    /// The same message with `supersedes_sequence` packed, which readers have to take as well.
    var packed: [UInt8] {
        var alone = self
        alone.superseded = []
        var numbers = FieldWriter()
        for number in superseded { numbers.varint(number) }
        var writer = FieldWriter(encoded: alone.encoded)
        writer.bytes(15, numbers.encoded)
        return writer.encoded
    }
}

/// `hermes.v1.OrderStatusUpdate`
struct SampleUpdate {
    var orderID = ""
    var salesID = ""
    var status: Int32 = 0
    var reason = ""
    var updatedAtMs: Int64 = 0
    var details: [(key: String, value: String)] = []

    /// The entries of the map with key and value, as SwiftProtobuf writes them.
    var encoded: [UInt8] { encoded(isShort: false) }
    /// The entries without empty keys and values, as protobuf-c writes them.
    var encodedShort: [UInt8] { encoded(isShort: true) }

    private func encoded(isShort: Bool) -> [UInt8] {
        var writer = FieldWriter()
        writer.text(1, orderID)
        writer.text(2, salesID)
        writer.number(3, UInt64(bitPattern: Int64(status)))
        writer.text(4, reason)
        writer.number(5, UInt64(bitPattern: updatedAtMs))
        for (key, value) in details {
            var entry = FieldWriter()
            if !isShort || !key.isEmpty { entry.element(1, key) }
            if !isShort || !value.isEmpty { entry.element(2, value) }
            writer.element(6, entry.encoded)
        }
        return writer.encoded
    }
}

/// `hermes.v1.ClientReport`
struct SampleReport {
    var received: UInt64 = 0
    var duplicates: UInt64 = 0
    var losses: [(key: String, value: UInt64)] = []
    var connects: UInt64 = 0
    var heartbeatSeconds: UInt32 = 0
    var sinceMs: Int64 = 0
    var network = ""
    var lostConnections: UInt64 = 0
    var lostSessions: UInt64 = 0
    var droppedAtMostOnce: UInt64 = 0
    var published: UInt64 = 0

    /// The entries of the map with key and value, as SwiftProtobuf writes them.
    var encoded: [UInt8] { encoded(isShort: false) }
    /// The entries without empty keys and values, as protobuf-c writes them.
    var encodedShort: [UInt8] { encoded(isShort: true) }

    private func encoded(isShort: Bool) -> [UInt8] {
        var writer = FieldWriter()
        writer.number(1, received)
        writer.number(2, duplicates)
        for (key, value) in losses {
            var entry = FieldWriter()
            if !isShort || !key.isEmpty { entry.element(1, key) }
            if !isShort || value != 0 { entry.element(2, value) }
            writer.element(3, entry.encoded)
        }
        writer.number(4, connects)
        writer.number(5, UInt64(heartbeatSeconds))
        writer.number(6, UInt64(bitPattern: sinceMs))
        writer.text(7, network)
        writer.number(8, lostConnections)
        writer.number(9, lostSessions)
        writer.number(10, droppedAtMostOnce)
        writer.number(11, published)
        return writer.encoded
    }
}

/// Appends fields as the wire format has them; `number`, `text` and `bytes` leave out defaults.
struct FieldWriter {
    var encoded: [UInt8] = []

    mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            encoded.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        encoded.append(UInt8(rest))
    }

    mutating func tag(_ field: UInt64, wireType: UInt64) { varint(field << 3 | wireType) }

    mutating func element(_ field: UInt64, _ value: UInt64) {
        tag(field, wireType: 0)
        varint(value)
    }

    mutating func element(_ field: UInt64, _ value: String) {
        element(field, Array(value.utf8))
    }

    mutating func element(_ field: UInt64, _ value: [UInt8]) {
        tag(field, wireType: 2)
        varint(UInt64(value.count))
        encoded += value
    }

    mutating func number(_ field: UInt64, _ value: UInt64) {
        if value != 0 { element(field, value) }
    }

    mutating func text(_ field: UInt64, _ value: String) {
        if !value.isEmpty { element(field, value) }
    }

    mutating func bytes(_ field: UInt64, _ value: [UInt8]) {
        if !value.isEmpty { element(field, value) }
    }
}
