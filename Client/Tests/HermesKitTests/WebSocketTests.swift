import Foundation
import HermesClientCore
import NIOCore
import NIOEmbedded
import Testing

@testable import HermesClientNIO
@testable import HermesKit

@Suite("WebSocket", .timeLimit(.minutes(2)))
struct WebSocketTests {
    /// The example of RFC 6455, section 1.3.
    private static let nonce = Array("the sample nonce".utf8)
    private static let answer = """
        HTTP/1.1 101 Switching Protocols\r
        Upgrade: websocket\r
        Connection: keep-alive, Upgrade\r
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r
        Sec-WebSocket-Protocol: mqtt\r
        \r\n
        """

    private func head(_ text: String) throws -> HTTPHead? {
        var buffer = ByteBuffer(string: text)
        return try HTTPHead.take(from: &buffer)
    }

    @Test("SHA-1 and Base64 are the standards', around the ends of blocks")
    func digests() {
        func hash(_ text: String) -> String {
            SHA1.hash(Array(text.utf8)).map { String(format: "%02x", $0) }.joined()
        }
        #expect(hash("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
        #expect(hash("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(
            hash(String(repeating: "a", count: 55)) == "c1c8bbdc22796e28c0e15163d20899b65621d65a")
        #expect(
            hash(String(repeating: "a", count: 56)) == "c2db330f6083854c99d4b5bfb6e8f29f201be699")
        #expect(
            hash(String(repeating: "a", count: 64)) == "0098ba824b5c16427bd7a1122a5a442a25ec644d")
        for count in 0..<70 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            #expect(Base64.text(bytes) == Data(bytes).base64EncodedString())
        }
    }

    @Test("an answer opens the connection only if it is the one to the request")
    func answers() throws {
        func objection(_ text: String) throws -> String? {
            WebSocketRequest.objection(to: try #require(try head(text)), nonce: Self.nonce)
        }
        #expect(try objection(Self.answer) == nil)
        for (part, other, word) in [
            ("101 Switching Protocols", "404 Not Found", "404 Not Found"),
            ("Upgrade: websocket", "Upgrade: h2c", "no upgrade"),
            ("keep-alive, Upgrade", "keep-alive", "no upgrade"),
            ("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "s3pPLMBiTxaQ9kYGzzhZRbK+xOp=", "not to the client's"),
            ("Protocol: mqtt", "Protocol: chat", "sub-protocol"),
            ("Sec-WebSocket-Protocol: mqtt\r\n", "", "sub-protocol"),
            (
                "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions: x\r\nSec-WebSocket-Protocol",
                "extension"
            ),
        ] {
            let text = Self.answer.replacingOccurrences(of: part, with: other)
            #expect(try objection(text)?.contains(word) == true, "\(other)")
        }
    }

    @Test("a head is taken whole, at any cut, and not beyond its limit")
    func heads() throws {
        let bytes = Array(Self.answer.utf8)
        for count in 0..<bytes.count {
            var buffer = ByteBuffer(bytes: bytes.prefix(count))
            #expect(try HTTPHead.take(from: &buffer) == nil)
            #expect(buffer.readableBytes == count)
        }
        var buffer = ByteBuffer(bytes: bytes + [1, 2, 3])
        let head = try #require(try HTTPHead.take(from: &buffer))
        #expect(head.status == 101 && head.values("upgrade") == ["websocket"])
        #expect(Array(buffer.readableBytesView) == [1, 2, 3])

        for text in [
            "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
            "HTTP/1.1 200 O\u{1}K\r\n\r\n", "HTTP/1.1 +20 OK\r\n\r\n",
            String(repeating: "x", count: HTTPHead.mostBytes),
        ] {
            #expect(throws: HTTPHead.Malformed.self, "\(text.prefix(30))") { try self.head(text) }
        }
    }

    private func pieces(_ bytes: [UInt8], each count: Int) throws -> [WebSocketFrames.Piece] {
        var (decoder, buffer) = (WebSocketFrames.Decoder(), ByteBuffer())
        var pieces: [WebSocketFrames.Piece] = []
        for start in stride(from: 0, to: bytes.count, by: count) {
            buffer.writeBytes(bytes[start..<min(start + count, bytes.count)])
            while let piece = try decoder.next(from: &buffer) { pieces.append(piece) }
        }
        return pieces
    }

    @Test("frames are read at any cut: parts, empty ones, lengths of each form, pings between")
    func frames() throws {
        let long = [UInt8](repeating: 7, count: 300)
        let longest = [UInt8](repeating: 9, count: 70_000)
        let bytes: [UInt8] =
            [0x02, 1, 1] + [0x89, 2, 5, 6] + [0x00, 0] + [0x8A, 0] + [0x80, 2, 2, 3]
            + [0x82, 126, 1, 44] + long + [0x82, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70] + longest
            + [0x88, 2, 3, 0xE8]
        for count in [1, 2, 3, 7, 1_000, bytes.count] {
            let pieces = try pieces(bytes, each: count)
            let data = pieces.flatMap { piece -> [UInt8] in
                if case .data(let data) = piece { return Array(data.readableBytesView) }
                return []
            }
            #expect(data == [1, 2, 3] + long + longest)
            #expect(pieces.contains(.ping(ByteBuffer(bytes: [5, 6]))))
            #expect(pieces.last == .close)
        }
    }

    @Test(
        "a frame that breaks a rule ends it",
        arguments: [
            ([0x81, 0], "text"), ([0xC2, 0], "reserved"), ([0x83, 0], "reserved"),
            ([0x8B, 0], "reserved"), ([0x82, 0x80], "mask"), ([0x09, 0], "parts"),
            ([0x89, 126, 0, 200], "125"), ([0x80, 0], "part of a message"),
            ([0x02, 0, 0x82, 0], "part of a message"), ([0x82, 126, 0, 125], "shortest"),
            ([0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], "shortest"),
            ([0x82, 127, 0x80, 0, 0, 0, 0, 1, 0, 0], "shortest"),
        ] as [([UInt8], String)])
    func faults(bytes: [UInt8], word: String) throws {
        let fault = #expect(throws: WebSocketFrames.Fault.self) { try pieces(bytes, each: 1) }
        #expect(fault?.rawValue.contains(word) == true, "\(String(describing: fault))")
    }

    @Test("any bytes are frames, wait for more or break a rule; none bring more than came")
    func anyBytes() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<5_000 {
            let count = Int.random(in: 0...40, using: &random)
            var bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            // Most first bytes at random are no frame's.
            if count > 0, Bool.random(using: &random) {
                bytes[0] = [0x82, 0x02, 0x89, 0x88].randomElement(using: &random) ?? 0x82
            }
            if count > 1 { bytes[1] &= 0x7F }
            let data = (try? pieces(bytes, each: Int.random(in: 1...41, using: &random))) ?? []
            let sizes = data.map { piece in
                if case .data(let data) = piece { data.readableBytes } else { 0 }
            }
            #expect(sizes.reduce(0, +) <= count, "\(bytes)")
            var buffer = ByteBuffer(bytes: Array("HTTP/1.1 ".utf8) + bytes + [13, 10, 13, 10])
            _ = try? HTTPHead.take(from: &buffer)
        }
    }

    @Test("a client's frames carry their mask, at lengths of each form")
    func masks() {
        for count in [0, 1, 125, 126, 65_535, 65_536] {
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13) }
            let frame = WebSocketFrames.frame(
                .binary, ByteBuffer(bytes: payload), mask: 0x0102_0304)
            let bytes = Array(frame.readableBytesView)
            let size = count < 126 ? 2 : count < 65_536 ? 4 : 10
            #expect(bytes[0] == 0x82 && bytes[1] & 0x80 != 0)
            #expect(Array(bytes[size..<size + 4]) == [1, 2, 3, 4])
            let unmasked = bytes.dropFirst(size + 4).enumerated()
                .map { $1 ^ UInt8($0 % 4 + 1) }
            #expect(unmasked == payload)
        }
    }

    /// A connection whose request is granted by an answer that `frames` follow.
    private func granted(
        _ channel: EmbeddedChannel, then frames: [UInt8]
    ) throws -> WebSocketHandler {
        let handler = WebSocketHandler(
            WebSocketRequest(path: "/mqtt", headers: []), host: "a.example", asksWhenActive: true)
        try channel.pipeline.syncOperations.addHandler(handler)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let asked = try #require(try channel.readOutbound(as: ByteBuffer.self))
        let text = String(buffer: asked)
        #expect(text.hasPrefix("GET /mqtt HTTP/1.1\r\nHost: a.example\r\n"))
        let key = try #require(
            text.components(separatedBy: "Sec-WebSocket-Key: ").last?.prefix(24))
        let proof = Base64.text(
            SHA1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
        let answer = Self.answer.replacingOccurrences(
            of: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", with: proof)
        var bytes = ByteBuffer(string: answer)
        bytes.writeBytes(frames)
        try channel.writeInbound(bytes)
        return handler
    }

    @Test("a broker that reads nothing has one answer to its pings waiting, that to the newest")
    func pingsOfABrokerThatReadsNothing() throws {
        let channel = EmbeddedChannel()
        _ = try granted(channel, then: [])
        channel.isWritable = false
        channel.pipeline.fireChannelWritabilityChanged()
        for count in UInt8(1)...100 {
            try channel.writeInbound(ByteBuffer(bytes: [0x89, 1, count]))
            #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
        }
        channel.isWritable = true
        channel.pipeline.fireChannelWritabilityChanged()
        let pong = try #require(try channel.readOutbound(as: ByteBuffer.self))
        let sent = Array(pong.readableBytesView)
        #expect(sent.prefix(2) == [0x8A, 0x81] && sent[6] ^ sent[2] == 100)
        channel.pipeline.fireChannelWritabilityChanged()
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
    }

    @Test("nothing that comes after a fault is kept")
    func bytesAfterAFault() throws {
        let channel = EmbeddedChannel()
        let handler = try granted(channel, then: [])
        #expect(throws: TransportFault.self) {
            try channel.writeInbound(ByteBuffer(bytes: [0x81, 0]))
        }
        try channel.writeInbound(ByteBuffer(repeating: 0, count: 10_000))
        let buffer = Mirror(reflecting: handler).descendant("buffer") as? ByteBuffer
        #expect(try #require(buffer).readableBytes < 10)
    }

    @Test("nothing but the newest ping of a read is answered, and a close frame is")
    func controlFrames() throws {
        let channel = EmbeddedChannel()
        // The first frames may come with the answer.
        _ = try granted(channel, then: [0x89, 1, 1, 0x89, 1, 2, 0x82, 1, 9])
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(bytes: [9]))
        let pong = try #require(try channel.readOutbound(as: ByteBuffer.self))
        let sent = Array(pong.readableBytesView)
        #expect(sent.prefix(2) == [0x8A, 0x81] && sent[6] ^ sent[2] == 2)
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)

        try channel.writeInbound(ByteBuffer(bytes: [0x88, 0]))
        let close = try #require(try channel.readOutbound(as: ByteBuffer.self))
        #expect(close.getInteger(at: 0, as: UInt8.self) == 0x88)
        #expect(!channel.isActive)
    }

    @Test("paths and headers that would break a request are refused, with the reason")
    func refused() {
        for (path, headers, word) in [
            ("mqtt", [:], "begins with /"), ("/a b", [:], "spaces"), ("/a#b", [:], "#"),
            ("/\r\nX: y", [:], "spaces"), ("/mqtt", ["A: b": "c"], "no header"),
            ("/mqtt", ["A": "b\r\nC: d"], "no header"), ("/mqtt", ["Host": "b"], "own"),
            ("/mqtt", ["sec-websocket-key": "b"], "own"),
        ] as [(String, [String: String], String)] {
            let server = HermesClient.Server.plain("127.0.0.1")
                .overWebSocket(path: path, headers: headers)
            let error = #expect(throws: HermesClientError.self) {
                try HermesClient(.init(server, clientID: "a", storage: .none))
            }
            #expect(error?.description.contains(word) == true, "\(path)")
        }
        let server = HermesClient.Server.plain("a\r\nb").overWebSocket()
        #expect(throws: HermesClientError.self) {
            try HermesClient(.init(server, clientID: "a", storage: .none))
        }
    }

    @Test("words of a server reach a log in a line, with nothing that deceives a terminal")
    func escapedWords() throws {
        let answer = try #require(
            try head("HTTP/1.1 404 a\rb\u{2028}c\u{202E}d\u{9B}e\r\n\r\n"))
        let objection = try #require(
            WebSocketRequest.objection(to: answer, nonce: Self.nonce))
        for reason in [DropReason.webSocketFailed(objection), .proxyFailed(objection)] {
            let cause = HermesClient.DropCause(reason)
            #expect(
                cause.description.contains("404 a\\u{d}b\\u{2028}c\\u{202e}d\\u{9b}e"),
                "\(cause)")
            let event = HermesClient.Event.dropped(cause)
            #expect(event.description == "disconnected: \(cause.description)")
        }
    }

    @Test("messages of any length go and come over WebSocket, with a broker of another maker")
    func mosquitto() async throws {
        let port = try TestBroker.freePort()
        let broker = try await TestBroker(["listener \(port) 127.0.0.1", "protocol websockets"])
        defer { broker.stop() }
        var configuration = HermesClient.Configuration(
            .plain("127.0.0.1", port: port).overWebSocket(), clientID: "phone",
            storage: .none)
        configuration.sendsReports = false
        let client = try HermesClient(configuration)
        client.start()
        try await client.subscribe("a", qos: .atLeastOnce)
        for count in [0, 100, 60_000, 300_000] {
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            _ = try await client.publish(.init(topic: "a", payload: payload))
            let delivery = try #require(await client.take(1).first)
            #expect(delivery.payload == payload)
        }
        await client.stop()
    }
}
