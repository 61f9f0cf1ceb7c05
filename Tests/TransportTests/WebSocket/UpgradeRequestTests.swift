import Testing

@testable import Transport

@Suite("WebSocket: the request for the upgrade")
struct UpgradeRequestTests {
    static let rules = WebSocketRules(path: "/mqtt", origins: ["https://app.example.org"])
    static let lines = [
        "GET /mqtt HTTP/1.1", "Host: broker.example.org", "Upgrade: websocket",
        "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: mqtt",
    ]

    /// A request whose lines with these beginnings are replaced, or left out; further ones follow.
    static func request(_ changes: [String: String?] = [:], adding added: [String] = []) -> [UInt8]
    {
        let changed = lines.compactMap { line in
            changes.first { line.hasPrefix($0.key) }.map(\.value) ?? line
        }
        return Array(((changed + added).map { $0 + "\r\n" }.joined() + "\r\n").utf8)
    }

    static func decode(
        _ bytes: [UInt8], read: Int = 0, rules: WebSocketRules = rules
    ) throws(WebSocketFlaw) -> UpgradeRequest? {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: bytes.count, alignment: 1)
        defer { buffer.deallocate() }
        buffer.copyBytes(from: bytes)
        return try UpgradeRequest.decode(UnsafeRawBufferPointer(buffer), rules: rules, read: read)
    }

    @Test("is answered with the digest of its key, as in RFC 6455, and the sub-protocol")
    func accepted() throws {
        let request = try #require(try Self.decode(Self.request()))
        #expect(request.subProtocol == .mqtt)
        #expect(request.size == Self.request().count)
        #expect(
            String(decoding: UpgradeResponse.switching(request), as: UTF8.self)
                == "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                + "Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                + "Sec-WebSocket-Protocol: mqtt\r\n\r\n")
    }

    @Test(
        "may have every form that HTTP allows",
        arguments: [
            Self.request(["GET": "GET /mqtt?token=a/b?c HTTP/1.1"]),
            Self.request(["GET": "GET http://broker.example.org/mqtt HTTP/1.1"]),
            Self.request(["GET": "GET HTTPS://broker.example.org:443/mqtt?x HTTP/1.1"]),
            Self.request(["Upgrade": "upgrade:WebSocket"]),
            Self.request(["Upgrade": "Upgrade: h2c, websocket"]),
            Self.request(["Connection": "CONNECTION:  keep-alive ,\tupgrade \t"]),
            Self.request(["Connection": "Connection: keep-alive"], adding: ["Connection: Upgrade"]),
            Self.request(adding: ["Origin: https://app.example.org"]),
            Self.request(adding: ["Origin: HTTPS://App.Example.org"]),
            Self.request(adding: ["Content-Length: 0"]),
            Self.request(adding: ["Cookie: a=b; c=\"ü\"", "X-Empty:"]),
            Self.request(adding: (1...93).map { "X-\($0): y" }),
            Self.request(["Sec-WebSocket-Protocol": "Sec-WebSocket-Protocol: chat, mqtt"]),
            Self.request(adding: ["Sec-WebSocket-Extensions: permessage-deflate"]),
        ])
    func forms(request: [UInt8]) throws {
        #expect(try Self.decode(request)?.size == request.count)
    }

    @Test("gets mqtt if it offers that, else mqttv3.1")
    func subProtocol() throws {
        let name = "Sec-WebSocket-Protocol"
        for (offered, expected) in [
            ("mqtt", .mqtt), ("mqttv3.1", .mqttv31), ("mqttv3.1, mqtt", .mqtt),
            ("chat,mqttv3.1", .mqttv31),
        ] as [(String, UpgradeRequest.SubProtocol)] {
            let request = Self.request([name: "\(name): \(offered)"])
            #expect(try Self.decode(request)?.subProtocol == expected, "\(offered)")
        }
        let twice = Self.request([name: "\(name): chat"], adding: ["\(name): mqtt"])
        #expect(try Self.decode(twice)?.subProtocol == .mqtt)
    }

    @Test(
        "is refused for what it lacks or has",
        arguments: [
            ([0x10, 0x0C, 0x00], .notHTTP),
            ([0x16, 0x03, 0x01], .notHTTP),
            (Array("\r\nGET".utf8), .notHTTP),
            (Array("get / HTTP/1.1\r\n\r\n".utf8), .notHTTP),
            (request(["GET": "POST /mqtt HTTP/1.1"]), .method),
            (request(["GET": "HEAD /mqtt HTTP/1.1"]), .method),
            (request(["GET": "GET /mqtt HTTP/1.0"]), .httpVersion),
            (request(["GET": "GET /mqtt HTTP/2"]), .httpVersion),
            (request(["GET": "GET /mqtt"]), .malformedRequest),
            (request(["GET": "GET  /mqtt HTTP/1.1"]), .malformedRequest),
            (request(["GET": "GET /mqtt HTTP/1.1 "]), .malformedRequest),
            (request(["GET": "GET /mqtt FTP/1.1"]), .malformedRequest),
            (request(["GET": "GET mqtt HTTP/1.1"]), .malformedRequest),
            (request(["GET": "GET ftp://a/mqtt HTTP/1.1"]), .malformedRequest),
            (request(["GET": "GET /mqtt\u{7F} HTTP/1.1"]), .malformedRequest),
            (request(["GET": "GET /mqtt\u{FC} HTTP/1.1"]), .malformedRequest),
            (request(["GET": "G(T /mqtt HTTP/1.1"]), .malformedRequest),
            (request(["GET": "GET / HTTP/1.1"]), .path),
            (request(["GET": "GET /mqtt/ HTTP/1.1"]), .path),
            (request(["GET": "GET /MQTT HTTP/1.1"]), .path),
            (request(["GET": "GET /%6dqtt HTTP/1.1"]), .path),
            (request(["GET": "GET http://broker.example.org HTTP/1.1"]), .path),
            (request(["Host": nil]), .host),
            (request(["Host": "Host:"]), .host),
            (request(adding: ["Host: other"]), .host),
            (request(adding: ["Content-Length: 5"]), .body),
            (request(adding: ["Transfer-Encoding: chunked"]), .body),
            (request(["Upgrade": nil]), .notUpgrade),
            (request(["Upgrade": "Upgrade: h2c"]), .notUpgrade),
            (request(["Connection": nil]), .notUpgrade),
            (request(["Connection": "Connection: close"]), .notUpgrade),
            (request(["Sec-WebSocket-Version": nil]), .version),
            (request(["Sec-WebSocket-Version": "Sec-WebSocket-Version: 8"]), .version),
            (request(["Sec-WebSocket-Version": "Sec-WebSocket-Version: 013"]), .version),
            (request(adding: ["Sec-WebSocket-Version: 13"]), .version),
            (request(["Sec-WebSocket-Key": nil]), .key),
            (request(["Sec-WebSocket-Key": "Sec-WebSocket-Key: abc"]), .key),
            (request(["Sec-WebSocket-Key": "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR=="]), .key),
            (request(["Sec-WebSocket-Key": "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ*=="]), .key),
            (request(adding: ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]), .key),
            (request(adding: ["Origin: https://evil.example.org"]), .origin),
            (request(adding: ["Origin: null"]), .origin),
            (request(adding: ["Origin:"]), .origin),
            (request(adding: ["Origin: https://app.example.org.evil.org"]), .origin),
            (request(adding: ["Origin: http://app.example.org"]), .origin),
            (
                request(
                    adding: ["Origin: https://app.example.org", "Origin: https://app.example.org"]),
                .origin
            ),
            (request(["Sec-WebSocket-Protocol": nil]), .subProtocol),
            (request(["Sec-WebSocket-Protocol": "Sec-WebSocket-Protocol: chat"]), .subProtocol),
            (request(["Sec-WebSocket-Protocol": "Sec-WebSocket-Protocol: MQTT"]), .subProtocol),
            (request(adding: [" folded: line"]), .malformedRequest),
            (request(adding: ["no colon"]), .malformedRequest),
            (request(adding: [": no name"]), .malformedRequest),
            (request(adding: ["blank : before the colon"]), .malformedRequest),
            (request(adding: ["nul: \0"]), .malformedRequest),
            (request(adding: ["lf: \n x: y"]), .malformedRequest),
            (request(adding: ["cr: \r x: y"]), .malformedRequest),
            (request(adding: (1...95).map { "X-\($0): y" }), .headersTooLong),
            (
                request(adding: ["X: " + String(repeating: "y", count: 8_000)]), .headersTooLong
            ),
            (Array("GET ".utf8) + [UInt8](repeating: 0x2F, count: 8_188), .headersTooLong),
        ] as [([UInt8], WebSocketFlaw)])
    func refused(bytes: [UInt8], flaw: WebSocketFlaw) {
        #expect(throws: flaw) { try Self.decode(bytes) }
    }

    @Test("is waited for until its empty line, and frames behind it are not touched")
    func arrival() throws {
        let request = Self.request()
        for count in request.indices {
            #expect(try Self.decode(Array(request[..<count])) == nil)
            // What an earlier call has seen need not be looked at again.
            let behind = try Self.decode(request, read: count)
            #expect(behind?.size == request.count)
        }
        #expect(try Self.decode(request + [0x82, 0x80, 0, 0, 0, 0])?.size == request.count)
    }

    @Test("may have 8,192 bytes")
    func size() throws {
        let most = UpgradeRequest.maximumSize
        let rest = most - Self.request(adding: ["X: "]).count
        let full = Self.request(adding: ["X: " + String(repeating: "y", count: rest)])
        #expect(full.count == most)
        #expect(try Self.decode(full)?.size == most)
        #expect(try Self.decode(full.dropLast()) == nil)
        let longer = Self.request(adding: ["X: " + String(repeating: "y", count: rest + 1)])
        #expect(throws: WebSocketFlaw.headersTooLong) { try Self.decode(longer) }
    }

    @Test("is refused by a response with a status, a sentence, and what the status asks for")
    func responses() {
        for flaw in WebSocketFlaw.allCases {
            guard case .response(let status) = flaw.answer else { continue }
            let text = String(
                decoding: UpgradeResponse.refusing(flaw, status: status), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 \(status) "))
            let parts = text.split(separator: "\r\n\r\n")
            #expect(parts.count == 2 && parts[1].contains(flaw.explanation))
            #expect(parts[0].contains("Content-Length: \(parts[1].utf8.count)\r\n"))
            #expect(text.contains("Allow: GET") == (flaw == .method))
            #expect(text.contains("Sec-WebSocket-Version: 13") == (status == 426))
        }
    }
}
