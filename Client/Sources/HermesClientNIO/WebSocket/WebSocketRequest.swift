/// The request that makes a connection one of WebSocket, and the answer to it (RFC 6455, section 4).
package struct WebSocketRequest: Hashable, Sendable {
    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The sub-protocol of MQTT 3.1.1 and later [MQTT-6.0.0-3].
    static let subprotocol = "mqtt"
    private static let identifier = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    /// Headers that are the handshake's own.
    private static let own: Set<String> = [
        "host", "upgrade", "connection", "content-length", "transfer-encoding",
    ]

    /// Begins with "/", and may have a query.
    package var path: String
    /// More headers, such as Authorization.
    package var headers: [Header]

    package init(path: String, headers: [Header]) {
        self.path = path
        self.headers = headers
    }

    /// Why nobody could be asked with this; `nil` if it is well.
    package var objection: String? {
        guard path.hasPrefix("/"), path.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != 0x23 }) else {
            return "\"\(path)\" is no path; it begins with / and has neither spaces nor #, "
                + "and %XX in place of what is not ASCII"
        }
        for header in headers {
            let name = header.name.lowercased()
            guard !name.isEmpty, name.utf8.allSatisfy({ Self.isToken($0) }),
                header.value.utf8.allSatisfy({ 0x20...0x7E ~= $0 })
            else {
                return "\"\(header.name)\" is no header, or its value is not of printable ASCII"
            }
            guard !Self.own.contains(name), !name.hasPrefix("sec-websocket-") else {
                return "the header \(header.name) is the client's own"
            }
        }
        return nil
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// The request, with 16 random bytes that the answer must repeat in its way.
    func text(host: String, nonce: [UInt8]) -> String {
        let lines = [
            "GET \(path) HTTP/1.1", "Host: \(host)", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: \(Base64.text(nonce))", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: \(Self.subprotocol)",
        ]
        return (lines + headers.map { "\($0.name): \($0.value)" } + ["", ""])
            .joined(separator: "\r\n")
    }

    /// Why the answer to a request with `nonce` opens no WebSocket for MQTT; `nil` if it does.
    static func objection(to answer: HTTPHead, nonce: [UInt8]) -> String? {
        guard answer.status == 101 else {
            return "the answer to the request was \(answer.status) \(answer.phrase)"
        }
        guard answer.values("upgrade").map({ $0.lowercased() }) == ["websocket"],
            answer.values("connection").contains(where: { $0.lowercased() == "upgrade" })
        else { return "the answer to the request names no upgrade to WebSocket" }
        let proof = Base64.text(SHA1.hash(Array((Base64.text(nonce) + identifier).utf8)))
        guard answer.values("sec-websocket-accept") == [proof] else {
            return "the answer is not to the client's request"
        }
        guard answer.values("sec-websocket-protocol") == [subprotocol] else {
            return "the server does not speak the sub-protocol mqtt"
        }
        guard answer.values("sec-websocket-extensions").isEmpty else {
            return "the server uses an extension that nobody asked for"
        }
        return nil
    }
}
