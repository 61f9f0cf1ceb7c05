import HermesTesting
import Structures
import SystemFiles
import Testing

@testable import Transport

@Suite("Transport: connections of WebSocket")
struct WebSocketConnectionTests {
    private static let rules = WebSocketRules(path: "/mqtt")
    private static let request = UpgradeRequestTests.request()

    private static func makeServer() throws -> EchoServer {
        var server = try EchoServer()
        server.webSocket = rules
        return server
    }

    /// Connects a peer whose request the server has answered.
    private static func upgrade(
        _ server: inout EchoServer, receiveBuffer: CInt? = nil
    ) throws -> (peer: TestPeer, handle: Handle) {
        let (peer, handle) = try server.connect(receiveBuffer: receiveBuffer)
        peer.send(request)
        let answer = try receive(from: peer, &server) { $0.suffix(4) == [13, 10, 13, 10] }
        #expect(answer.starts(with: "HTTP/1.1 101 ".utf8))
        return (peer, handle)
    }

    /// Turns until what the peer has received is enough.
    private static func receive(
        from peer: TestPeer, _ server: inout EchoServer, until isEnough: ([UInt8]) -> Bool
    ) throws -> [UInt8] {
        var received: [UInt8] = []
        for _ in 0..<2_000 {
            received += peer.receive()
            if isEnough(received) || peer.sawEnd || peer.failure != nil { break }
            try server.turn(milliseconds: 5)
        }
        try #require(isEnough(received), "\(received.count) bytes")
        return received
    }

    @Test("change from HTTP to frames, and take frames that come with the request")
    func upgrade() throws {
        var server = try EchoServer()
        server.webSocket = Self.rules
        let (peer, handle) = try server.connect()
        peer.send(Self.request + clientFrame(.binary, frame([1, 2, 3])))
        let response = UpgradeResponse.switching(
            try #require(try UpgradeRequestTests.decode(Self.request)))
        let expected = response + [0x82, 6] + frame([1, 2, 3])
        let received = try Self.receive(from: peer, &server) { $0.count >= expected.count }
        #expect(received == expected)
        #expect(server.connections[handle]?.frames == [[1, 2, 3]])
        #expect(server.reactor.webSocketCount == 1)
        server.close(handle)
        #expect(server.reactor.webSocketCount == 0)
        #expect(server.pool.bytesInUse == 0)
    }

    @Test("a bound on what is sent at once makes frames of so many bytes")
    func parts() throws {
        var server = try Self.makeServer()
        server.mostSentAtOnce = 100
        let (peer, handle) = try Self.upgrade(&server)
        [UInt8](repeating: 7, count: 250).withUnsafeBytes {
            server.connections[handle]?.output.append($0, pool: server.pool)
        }
        server.flush(handle)
        let received = try Self.receive(from: peer, &server) { $0.count >= 256 }
        func part(_ count: Int) -> [UInt8] {
            [0x82, UInt8(count)] + [UInt8](repeating: 7, count: count)
        }
        #expect(received == part(100) + part(100) + part(50))
        #expect(server.connections[handle]?.parts == 2)
        server.close(handle)
        #expect(server.pool.bytesInUse == 0)
    }

    @Test("may send everything byte by byte, and hold no memory between messages")
    func slow() throws {
        var server = try EchoServer()
        server.webSocket = Self.rules
        let (peer, handle) = try server.connect()
        for byte in Self.request + clientFrame(.ping, [5]) + clientFrame(.binary, frame([7])) {
            peer.send([byte])
            try server.turn()
        }
        let end: [UInt8] = [0x8A, 1, 5, 0x82, 4] + frame([7])
        let received = try Self.receive(from: peer, &server) { $0.suffix(end.count) == end }
        #expect(received.starts(with: "HTTP/1.1 101 ".utf8))
        #expect(server.connections[handle]?.frames == [[7]])
        #expect(server.pool.bytesInUse == 0)
        #expect(server.reactor.unfinishedBytes == 0)
    }

    @Test("hold the token of their request, counted as unfinished input, until it is released")
    func token() throws {
        var server = try EchoServer()
        server.webSocket = WebSocketRules(path: "/mqtt", readsTokenInQuery: true)
        let token = String(repeating: "t", count: 3_000)
        let (peer, handle) = try server.connect()
        peer.send(
            UpgradeRequestTests.request(["GET": "GET /mqtt?access_token=\(token) HTTP/1.1"])
                + clientFrame(.ping, [5]).dropLast())
        _ = try server.turn { $0.reactor.unfinishedBytes == 192 + 3_072 }
        #expect(server.reactor.unfinishedBytes == 192 + 3_072)
        #expect(server.reactor.unfinishedInputs().map(\.connection) == [handle])
        #expect(server.reactor.holdsTokens == true)
        #expect(Array(server.reactor.token(of: handle)) == Array(token.utf8))
        peer.send(clientFrame(.ping, [5]).suffix(1) + clientFrame(.binary, frame([1])))
        let received = try Self.receive(from: peer, &server) { $0.suffix(4) == frame([1]) }
        #expect(received.suffix(9) == [0x8A, 1, 5, 0x82, 4] + frame([1]))
        #expect(server.reactor.unfinishedBytes == 192 + 3_072)
        server.reactor.releaseToken(handle)
        #expect(server.reactor.token(of: handle).isEmpty)
        #expect(server.reactor.holdsTokens == false)
        #expect(server.reactor.unfinishedBytes == 0)
        #expect(server.pool.bytesInUse == 0)
        // Connections that end before are freed, too.
        let (other, last) = try server.connect()
        other.send(UpgradeRequestTests.request(["GET": "GET /mqtt?access_token=t HTTP/1.1"]))
        _ = try Self.receive(from: other, &server) { $0.suffix(4) == [13, 10, 13, 10] }
        #expect(server.reactor.holdsTokens == true)
        server.close(last)
        #expect(server.reactor.holdsTokens == false)
        #expect(server.reactor.unfinishedBytes == 0)
        #expect(server.pool.bytesInUse == 0)
    }

    @Test("hold an unfinished header as unfinished input, until it is whole")
    func unfinished() throws {
        var server = try Self.makeServer()
        let (peer, handle) = try Self.upgrade(&server)
        let whole = clientFrame(.ping, pattern(125))
        peer.send(whole.dropLast())
        _ = try server.turn { $0.reactor.unfinishedBytes > 0 }
        #expect(server.reactor.unfinishedBytes == 192)
        #expect(server.reactor.unfinishedInputs().map(\.connection) == [handle])
        #expect(server.reactor.unfinishedInputs().map(\.bytes) == [192])
        peer.send(whole.suffix(1))
        let received = try Self.receive(from: peer, &server) { $0.count >= 127 }
        #expect(received == [0x8A, 125] + pattern(125))
        #expect(server.reactor.unfinishedBytes == 0)
        #expect(server.pool.bytesInUse == 0)
    }

    @Test(
        "get one frame for a turn's output, however large",
        arguments: [1, 122, 123, 65_000, 200_000])
    func output(size: Int) throws {
        var server = try Self.makeServer()
        let (peer, _) = try Self.upgrade(&server)
        // Two messages in one frame of the client come back in one frame.
        let messages = frame(pattern(size)) + frame([9])
        var sent = 0
        let bytes = clientFrame(.binary, messages)
        let expected = Self.serverFrame(messages)
        var received: [UInt8] = []
        for _ in 0..<2_000 where received.count < expected.count {
            sent += peer.send(bytes[sent...])
            try server.turn(milliseconds: 1)
            received += peer.receive()
        }
        if size < 60_000 {
            #expect(received == expected)
        } else {
            // Read in pieces, so that there may be a frame for each message.
            #expect(Self.payload(of: received) == messages)
        }
    }

    @Test("get whole frames when their sockets take only parts", arguments: UInt64(1)...4)
    func partialWrites(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var server = try Self.makeServer()
        let (peer, handle) = try Self.upgrade(&server, receiveBuffer: 32_768)
        let response = Int(server.reactor.bytesSent)
        var expected: [UInt8] = []
        var received: [UInt8] = []
        var pings = 0
        for _ in 0..<15 {
            let body = random.bytes(random.pick([1, 100, 5_000, 70_000, 200_000]))
            frame(body).withUnsafeBytes {
                server.connections[handle]?.output.append($0, pool: server.pool)
            }
            expected += frame(body)
            server.flush(handle)
            if random.once(in: 3) {
                peer.send(clientFrame(.ping, [UInt8(pings)]))
                pings += 1
            }
            try server.turn(milliseconds: 0)
            if random.once(in: 2) { received += peer.receive(random.number(in: 1...100_000)) }
        }
        for _ in 0..<20_000 where server.connections[handle]?.output.isEmpty != true {
            try server.turn(milliseconds: 1)
            received += peer.receive()
        }
        // The kernel has all of it; the answer to the request was read before.
        let sent = Int(server.reactor.bytesSent) - response
        for _ in 0..<20_000 where received.count < sent {
            try server.turn(milliseconds: 1)
            received += peer.receive()
        }
        #expect(Self.payload(of: received) == expected, "replay with seed \(seed)")
        server.close(handle)
        #expect(server.pool.bytesInUse == 0)
    }

    @Test("answer at most the last ping of a read, and stop answering a peer that does not read")
    func pings() throws {
        var server = try Self.makeServer()
        let (peer, handle) = try Self.upgrade(&server)
        peer.send(clientFrame(.ping, [1]) + clientFrame(.ping, [2]) + clientFrame(.ping, [3]))
        let received = try Self.receive(from: peer, &server) { $0.count >= 3 }
        #expect(received == [0x8A, 1, 3])
        // Output that the peer does not read stands before the pongs.
        let large = [UInt8](repeating: 1, count: 8_000_000)
        large.withUnsafeBytes { server.connections[handle]?.output.append($0, pool: server.pool) }
        server.flush(handle)
        let memory = server.pool.bytesInUse
        for number in 0..<100 {
            peer.send(clientFrame(.ping, [UInt8](repeating: UInt8(number), count: 125)))
            try server.turn(milliseconds: 0)
        }
        #expect(server.pool.bytesInUse < memory + 4_096)
        server.close(handle)
        #expect(server.pool.bytesInUse == 0)
    }

    @Test("end after the data before a broken frame, with the frame's code")
    func broken() throws {
        for (bytes, flaw) in [
            (clientFrame(.text, [0x61]), .textFrame), (clientFrame(.binary, mask: []), .unmasked),
            (clientFrame(.close, [1]), .closePayload),
            (clientFrame(.binary, [], length: 1 << 40), .frameTooLong),
        ] as [([UInt8], WebSocketFlaw)] {
            for data in [[], clientFrame(.binary, frame([4, 4]))] {
                var server = try Self.makeServer()
                let (peer, handle) = try Self.upgrade(&server)
                server.reactor.mostFramePayload = 1 << 20
                peer.send(data + bytes)
                let isTold = try server.turn { $0.connections[handle]?.flaw == flaw }
                #expect(isTold)
                #expect(server.connections[handle]?.frames.count == (data.isEmpty ? 0 : 1))
                guard case .close(let code) = flaw.answer else { continue }
                let echoed: [UInt8] = data.isEmpty ? [] : [0x82, 5] + frame([4, 4])
                let expected = echoed + ServerFrame.close(code)
                let received = try Self.receive(from: peer, &server) {
                    $0.count >= expected.count
                }
                #expect(received == expected)
                #expect(server.pool.bytesInUse == 0)
            }
        }
    }

    @Test("echo the code of a close frame, behind the data before it")
    func closes() throws {
        for (payload, echo) in [
            (closing(1_000), [0x88, 2, 3, 232]), (closing(4_000, [0x61]), [0x88, 2, 15, 160]),
            ([], [0x88, 0]),
        ] as [([UInt8], [UInt8])] {
            var server = try Self.makeServer()
            let (peer, handle) = try Self.upgrade(&server)
            peer.send(clientFrame(.binary, frame([1])) + clientFrame(.close, payload))
            let hasEnded = try server.turn { $0.connections[handle]?.hasEnded == true }
            #expect(hasEnded)
            server.close(handle)
            let received = try Self.receive(from: peer, &server) { $0.count >= 6 + echo.count }
            #expect(received == [0x82, 4] + frame([1]) + echo)
        }
    }

    @Test("are told of the end by a close frame with the owner's code, once")
    func ended() throws {
        var server = try Self.makeServer()
        let (peer, handle) = try Self.upgrade(&server)
        let mustTell = server.reactor.setCloseCode(handle, .goingAway)
        server.reactor.finishSending(handle)
        let mustTellAgain = server.reactor.setCloseCode(handle, .normal)
        #expect(mustTell && !mustTellAgain)
        server.close(handle)
        let received = try Self.receive(from: peer, &server) { $0.count >= 4 }
        #expect(received == [0x88, 2, 3, 233])
        #expect(peer.receive().isEmpty && peer.sawEnd)
    }

    @Test("get a response to a refused request, and the end of the stream")
    func refused() throws {
        for (request, flaw) in [
            (UpgradeRequestTests.request(["GET": "GET / HTTP/1.1"]), .path),
            ([0x10, 0x0C], .notHTTP),
            ([UInt8](repeating: 0x41, count: 70_000), .headersTooLong),
        ] as [([UInt8], WebSocketFlaw)] {
            var server = try EchoServer()
            server.webSocket = Self.rules
            let (peer, handle) = try server.connect()
            peer.send(request)
            let isTold = try server.turn { $0.connections[handle]?.flaw == flaw }
            #expect(isTold)
            guard case .response(let status) = flaw.answer else { continue }
            let expected = UpgradeResponse.refusing(flaw, status: status)
            let received = try Self.receive(from: peer, &server) { $0.count >= expected.count }
            #expect(received == expected)
            #expect(server.pool.bytesInUse == 0)
        }
    }

    @Test("come behind a PROXY header, also in one packet")
    func proxied() throws {
        var server = try EchoServer()
        server.webSocket = Self.rules
        server.expectsProxyHeader = true
        let (peer, handle) = try server.connect()
        peer.send(
            Array("PROXY TCP4 192.0.2.7 198.51.100.1 56324 80\r\n".utf8) + Self.request
                + clientFrame(.binary, frame([1])))
        let end: [UInt8] = [0x82, 4] + frame([1])
        let received = try Self.receive(from: peer, &server) { $0.suffix(6) == end }
        #expect(received.starts(with: "HTTP/1.1 101 ".utf8))
        #expect(server.reactor.address(of: handle) == "192.0.2.7:56324")
    }

    @Test("keep what the owner does not take, while control frames come")
    func kept() throws {
        var server = try Self.makeServer()
        let (peer, handle) = try Self.upgrade(&server)
        server.connections[handle]?.mostFrames = 1
        peer.send(clientFrame(.binary, frame([1]) + frame([2])))
        _ = try server.turn { $0.connections[handle]?.frames.count == 1 }
        #expect(Array(server.reactor.keptInput(handle)) == frame([2]))
        peer.send(clientFrame(.ping, [8]))
        let received = try Self.receive(from: peer, &server) { $0.count >= 9 }
        #expect(received == [0x82, 4] + frame([1]) + [0x8A, 1, 8])
        #expect(Array(server.reactor.keptInput(handle)) == frame([2]))
        server.readKept(handle)
        peer.send(clientFrame(.binary, frame([3])))
        _ = try server.turn { $0.connections[handle]?.frames.count == 3 }
        #expect(server.connections[handle]?.frames == [[1], [2], [3]])
    }

    // MARK: Frames of the server

    private static func serverFrame(_ payload: [UInt8]) -> [UInt8] {
        switch payload.count {
        case ...125: [0x82, UInt8(payload.count)] + payload
        case ...0xFFFF: [0x82, 126] + bigEndian(UInt64(payload.count), 2) + payload
        default: [0x82, 127] + bigEndian(UInt64(payload.count), 8) + payload
        }
    }

    /// The payloads of the binary frames; pongs are left out.
    private static func payload(of frames: [UInt8]) -> [UInt8] {
        var payload: [UInt8] = []
        var place = 0
        while place + 2 <= frames.count {
            #expect(frames[place] == 0x82 || frames[place] == 0x8A)
            let isData = frames[place] == 0x82
            var length = Int(frames[place + 1])
            place += 2
            let more = length == 126 ? 2 : length == 127 ? 8 : 0
            if more > 0 {
                length = frames[place..<place + more].reduce(0) { $0 << 8 | Int($1) }
                place += more
            }
            guard place + length <= frames.count else {
                Issue.record("a frame of \(length) bytes with \(frames.count - place)")
                return payload
            }
            if isData { payload += frames[place..<place + length] }
            place += length
        }
        return payload
    }
}
