import Testing

@testable import Transport

@Suite("WebSocket: frames of a client")
struct FrameDecoderTests {
    @Test("the table has 120 cases or more, each with a name of its own")
    func count() {
        #expect(FrameCase.all.count >= 120)
        #expect(Set(FrameCase.all.map(\.name)).count == FrameCase.all.count)
    }

    @Test("are read as the table says, at once", arguments: FrameCase.all)
    func whole(example: FrameCase) {
        for offset in [0, 1, 3, 6] {
            var reader = FrameReader(mostPayload: FrameCase.mostPayload, offset: offset)
            reader.read(example.bytes)
            #expect(reader.outcome == example.outcome)
        }
    }

    @Test("are read as the table says, byte by byte", arguments: FrameCase.all)
    func bytes(example: FrameCase) {
        var reader = FrameReader(mostPayload: FrameCase.mostPayload)
        // Bytes in the middle of a long payload tell nothing new.
        let single = min(example.bytes.count, 600)
        for byte in example.bytes[..<single] { reader.read([byte]) }
        reader.read(example.bytes[single...].dropLast(20))
        for byte in example.bytes[single...].suffix(20) { reader.read([byte]) }
        #expect(reader.outcome == example.outcome)
    }

    @Test("are read as the table says, cut anywhere", arguments: FrameCase.all)
    func cut(example: FrameCase) {
        // Cuts behind a long payload's header and before its end tell as much as all others.
        let count = example.bytes.count
        let places = count <= 300 ? Array(0...count) : Array(0...20) + Array(count - 5...count)
        for place in places {
            var reader = FrameReader(mostPayload: FrameCase.mostPayload)
            reader.read(example.bytes[..<place])
            reader.read(example.bytes[place...])
            #expect(reader.outcome == example.outcome, "cut at \(place)")
        }
    }

    @Test("without data are a flood beyond 256 in one read, and never over several")
    func flood() {
        for frame in [
            clientFrame(.ping), clientFrame(.pong, [1]), clientFrame(.binary),
            clientFrame(.binary, isFinal: false) + clientFrame(.continuation, isFinal: true),
        ] {
            let frames = frame.count > 7 ? 2 : 1
            let most = FrameDecoder.mostEmptyFrames / frames
            let full = [[UInt8]](repeating: frame, count: most).flatMap { $0 }
            var reader = FrameReader(mostPayload: 1_000)
            for _ in 0..<10 { reader.read(full) }
            #expect(reader.outcome.end == .open)
            reader.read(full + frame)
            #expect(reader.outcome.end == .flaw(.flood))
        }
    }

    @Test("with data are never a flood")
    func noFlood() {
        let frames = [[UInt8]](repeating: clientFrame(.binary, [9]), count: 10_000).flatMap { $0 }
        var reader = FrameReader(mostPayload: 1_000)
        reader.read(frames)
        #expect(reader.outcome.end == .open)
        #expect(reader.outcome.data == [UInt8](repeating: 9, count: 10_000))
    }

    @Test("leave at most 130 bytes unread: a control frame without its last byte")
    func mostUnread() {
        var reader = FrameReader(mostPayload: 1_000)
        reader.read(clientFrame(.ping, pattern(125)).dropLast())
        #expect(reader.rest.count == FrameDecoder.mostUnread)
        #expect(FrameDecoder.mostUnread == 130)
    }

    @Test("need no memory of their own: 12 bytes keep the state")
    func size() { #expect(MemoryLayout<FrameDecoder>.stride == 12) }
}

/// Reads frames as ``WebSocketStage`` does, and collects what they hold.
struct FrameReader {
    private var decoder = FrameDecoder()
    private let mostPayload: Int
    private let offset: Int
    private(set) var rest: [UInt8] = []
    private(set) var outcome = FrameCase.Outcome()

    init(mostPayload: Int, offset: Int = 0) {
        self.mostPayload = mostPayload
        self.offset = offset
    }

    mutating func read(_ bytes: some Collection<UInt8>) {
        guard outcome.end == .open else { return }
        let frames = rest + bytes
        let place = UnsafeMutableRawBufferPointer.allocate(
            byteCount: offset + frames.count, alignment: 16)
        let control = UnsafeMutableRawBufferPointer.allocate(
            byteCount: FrameDecoder.largestControlPayload, alignment: 16)
        defer {
            place.deallocate()
            control.deallocate()
        }
        let buffer = UnsafeMutableRawBufferPointer(rebasing: place[offset...])
        buffer.copyBytes(from: frames)
        guard let scratch = control.baseAddress else { return }
        let result = decoder.decode(buffer, mostPayload: mostPayload, control: scratch)
        precondition(result.produced <= result.consumed && result.consumed <= frames.count)
        outcome.data += buffer[..<result.produced]
        if let size = result.pingSize { outcome.lastPing = Array(control[..<size]) }
        rest = Array(frames[result.consumed...])
        if let flaw = result.flaw {
            outcome.end = .flaw(flaw)
        } else if let code = result.close {
            outcome.end = .close(code.rawValue)
        } else {
            precondition(rest.count <= FrameDecoder.mostUnread)
        }
    }
}
