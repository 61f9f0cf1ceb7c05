import COpenSSL

/// The answers to requests for an upgrade (RFC 6455, section 4.2.2).
enum UpgradeResponse {
    /// Appended to the client's key before it is hashed.
    private static let identifier = [UInt8]("258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)

    /// The answer that makes the connection one of WebSocket [MQTT-6.0.0-4].
    static func switching(_ request: UpgradeRequest) -> [UInt8] {
        let accept = String(decoding: accept(request.key), as: UTF8.self)
        return Array(
            """
            HTTP/1.1 101 Switching Protocols\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Accept: \(accept)\r
            Sec-WebSocket-Protocol: \(request.subProtocol.rawValue)\r
            \r

            """.utf8)
    }

    /// The value of `Sec-WebSocket-Accept`: the digest, by SHA-1, of key and identifier, in base64.
    static func accept(_ key: [UInt8]) -> [UInt8] {
        let message = key + identifier
        var digest = [UInt8](repeating: 0, count: 20)
        let isHashed = EVP_Digest(message, message.count, &digest, nil, EVP_sha1(), nil) == 1
        // Only OpenSSL's configuration can take it away.
        precondition(isHashed, "libcrypto has no SHA-1")
        // Four digits for three bytes, and the zero at the end.
        var text = [UInt8](repeating: 0, count: 29)
        let count = EVP_EncodeBlock(&text, digest, CInt(digest.count))
        return Array(text[..<Int(count)])
    }

    /// The answer to a request that is refused, with a sentence about what is wrong; behind it the
    /// connection closes.
    static func refusing(_ flaw: WebSocketFlaw, status: Int) -> [UInt8] {
        let text =
            "This is an MQTT broker, which takes MQTT over WebSocket. Refused: \(flaw.explanation).\n"
        var headers = ""
        switch flaw {
        case .method: headers = "Allow: GET\r\n"
        case .version: headers = "Sec-WebSocket-Version: 13\r\n"
        case .notUpgrade: headers = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        default: break
        }
        let connection = status == 426 ? "Upgrade, close" : "close"
        return Array(
            """
            HTTP/1.1 \(status) \(reason(of: status))\r
            \(headers)Content-Type: text/plain; charset=utf-8\r
            Content-Length: \(text.utf8.count)\r
            Connection: \(connection)\r
            \r
            \(text)
            """.utf8)
    }

    private static func reason(of status: Int) -> String {
        switch status {
        case 400: "Bad Request"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 426: "Upgrade Required"
        case 431: "Request Header Fields Too Large"
        case 505: "HTTP Version Not Supported"
        case let other: preconditionFailure("status \(other) is no answer to an upgrade")
        }
    }
}
