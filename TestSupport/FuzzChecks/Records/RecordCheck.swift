import HermesTesting
import TLS

/// A TLS connection yields exactly the data that its peer sealed, in order and once; anything else
/// ends the connection.
///
/// The first byte of an input chooses version, cipher, fragment limit and sequence numbers, the
/// second seeds the splits. The rest is a program that seals records, then changes, drops, repeats
/// and cuts them, or inserts bytes. Checks that nothing traps or writes beyond its buffer; that
/// records before the first changed one decode as in ``RecordModel``, and none from it on; that
/// splits change nothing; and that the peer can open the answers, including KeyUpdate and alerts.
enum RecordCheck {
    /// The result of reading a stream.
    private struct Reading: Hashable {
        var consumed = 0
        var plaintext: [UInt8] = []
        var state = SecureChannel.State.open
        var owesKeyUpdate = false
    }

    /// The expected result of a stream.
    private struct Expectation {
        var consumed = 0
        var plaintextCount = 0
        /// The receiver may end in any of these.
        var states = [SecureChannel.State.open]
        var owesKeyUpdate = false
    }

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        var program = ByteProgram(input)
        var ciphers = RecordCiphers()
        let keys = RecordKeys(&program)
        var random = SplitMix64(seed: UInt64(program.byte()))
        trace?("\(keys.version) \(keys.algorithm), fragments of \(keys.largestFragment)")
        let stream = RecordStream(keys, &program, &ciphers, trace: trace)
        let expected = expectation(stream)

        let whole = try read(stream, &ciphers) { stream.bytes.count }
        trace?(
            "\(whole.consumed) of \(stream.bytes.count) bytes gave \(whole.plaintext.count), "
                + "then \(whole.state)")
        try check(whole, expected, stream)
        // Each piece copies the kept bytes, so long records in many pieces are slow.
        let size = stream.bytes.count
        for largestPiece in [max(7, size / 64), max(600, size / 8)] {
            let pieces = try read(stream, &ciphers) { random.number(in: 1...largestPiece) }
            try CheckFailure.unless(
                pieces == whole,
                "in pieces of up to \(largestPiece) bytes it ends \(pieces.state) "
                    + "after \(pieces.consumed) and \(pieces.plaintext.count) bytes, at once "
                    + "\(whole.state) after \(whole.consumed) and "
                    + "\(whole.plaintext.count)")
        }
    }

    // MARK: What must come of it

    private static func expectation(_ stream: RecordStream) -> Expectation {
        var expected = Expectation()
        for record in stream.sealed {
            guard stream.bytes[expected.consumed...].starts(with: record.wire) else { break }
            expected.consumed += record.wire.count
            expected.plaintextCount = record.after.plaintextCount
            expected.owesKeyUpdate = record.after.owesKeyUpdate
            expected.states = [record.after.state]
            guard record.after.state == .open else { return expected }
        }
        // The rest was changed: it ends the connection once its record is complete.
        let rest = stream.bytes[expected.consumed...]
        guard rest.count >= 5 else { return expected }
        let length = Int(rest[rest.startIndex + 3]) << 8 | Int(rest[rest.startIndex + 4])
        let expansion = stream.keys.version == .tls13 ? 256 : 2_048
        if length > SecureChannel.largestPlaintext + expansion {
            expected.states = [.failed(.recordOverflow)]
        } else if rest.count >= 5 + length {
            expected.consumed += 5 + length
            expected.states = [
                .failed(.badRecordMAC), .failed(.unexpectedMessage), .failed(.recordOverflow),
            ]
        }
        return expected
    }

    private static func check(
        _ reading: Reading, _ expected: Expectation, _ stream: RecordStream
    ) throws(CheckFailure) {
        let plaintext = stream.plaintext[..<expected.plaintextCount]
        try CheckFailure.unless(
            reading.plaintext.elementsEqual(plaintext),
            "\(reading.plaintext.count) bytes came out that are not the \(plaintext.count) bytes "
                + "that were sealed")
        try CheckFailure.unless(
            expected.states.contains(reading.state),
            "it ends \(reading.state), which is none of \(expected.states)")
        try CheckFailure.unless(
            reading.consumed == expected.consumed,
            "\(reading.consumed) bytes were taken, not \(expected.consumed)")
        try CheckFailure.unless(
            reading.state != .open || reading.owesKeyUpdate == expected.owesKeyUpdate,
            "it owes a KeyUpdate: \(reading.owesKeyUpdate), not \(expected.owesKeyUpdate)")
    }

    // MARK: Reading

    /// Reads like a connection: keeps an incomplete record and offers it again with more bytes.
    private static func read(
        _ stream: RecordStream, _ ciphers: inout RecordCiphers, _ pieceSize: () -> Int
    ) throws(CheckFailure) -> Reading {
        var channel = stream.keys.receiver()
        var reading = Reading()
        var arrived = 0
        while arrived < stream.bytes.count, channel.isOpen {
            arrived = min(stream.bytes.count, arrived + pieceSize())
            try open(stream.bytes[reading.consumed..<arrived], &channel, &reading, &ciphers)
        }
        if !channel.isOpen {
            let before = reading
            try open(stream.bytes[reading.consumed...], &channel, &reading, &ciphers)
            try CheckFailure.unless(reading == before, "after its end it takes more")
        }
        try answer(channel, stream.keys.peer(), &ciphers)
        return reading
    }

    private static func open(
        _ bytes: ArraySlice<UInt8>, _ channel: inout SecureChannel, _ reading: inout Reading,
        _ ciphers: inout RecordCiphers
    ) throws(CheckFailure) {
        // A buffer of exactly the promised size, with a canary after it.
        let canary: [UInt8] = [0xCA, 0xFE, 0xBA, 0xBE, 0xCA, 0xFE, 0xBA, 0xBE]
        var target = [UInt8](repeating: 0, count: bytes.count) + canary
        let (consumed, produced) = bytes.withUnsafeBytes { source in
            target.withUnsafeMutableBytes { target in
                guard let base = target.baseAddress else { return (-1, -1) }
                let opened = channel.open(source, into: base, &ciphers)
                return (opened.consumed, opened.produced)
            }
        }
        try CheckFailure.unless(
            target.suffix(canary.count).elementsEqual(canary),
            "opening \(bytes.count) bytes writes beyond them")
        try CheckFailure.unless(
            (0...bytes.count).contains(consumed)
                && (0...consumed).contains(produced),
            "of \(bytes.count) bytes \(consumed) were taken and gave \(produced)")
        reading.consumed += consumed
        reading.plaintext += target[..<produced]
        reading.state = channel.state
        reading.owesKeyUpdate = channel.owesKeyUpdate
    }

    // MARK: Answering

    /// The receiver can still send after any end of the peer's direction: a due KeyUpdate, data, an
    /// alert.
    private static func answer(
        _ channel: SecureChannel, _ peer: SecureChannel, _ ciphers: inout RecordCiphers
    ) throws(CheckFailure) {
        var (channel, peer) = (channel, peer)
        var reading = Reading()
        var record = [UInt8](repeating: 0, count: SecureChannel.largestEnd)
        if channel.needsKeyUpdate {
            let size = record.withUnsafeMutableBytes { record in
                record.baseAddress.map { channel.sealKeyUpdate(in: $0, &ciphers) } ?? 0
            }
            try open(record[..<size], &peer, &reading, &ciphers)
            try CheckFailure.unless(
                !channel.needsKeyUpdate && reading == Reading(consumed: size),
                "our KeyUpdate leaves the peer \(peer.state)")
        }
        let data = [UInt8](0..<100)
        var sealed = channel.sealed(
            SecureChannel.ContentType.applicationData, data, &ciphers)
        try open(sealed[...], &peer, &reading, &ciphers)
        try CheckFailure.unless(
            reading.plaintext == data && peer.state == .open,
            "the peer cannot open what we seal: \(peer.state)")
        let size = record.withUnsafeMutableBytes { record in
            record.baseAddress.map { channel.sealEnd(in: $0, &ciphers) } ?? 0
        }
        sealed = [UInt8](record[..<size])
        try open(sealed[...], &peer, &reading, &ciphers)
        let expected: SecureChannel.State =
            switch channel.state {
            // Behind the warning no_renegotiation comes close_notify.
            case .open, .closed, .failed(.noRenegotiation): .closed
            // A fatal alert has no answer.
            case .aborted: .open
            case .failed: .aborted
            }
        try CheckFailure.unless(
            peer.state == expected,
            "the end of a channel that is \(channel.state) leaves the peer \(peer.state)")
    }
}
