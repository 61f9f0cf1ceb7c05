import Credentials

/// A login that the company's service is asked about.
package struct LoginQuestion: Sendable {
    /// As CONNECT names it.
    package var userName: [UInt8]
    package var clientIdentifier: [UInt8]
    package var password: [UInt8]
    /// The user name that the client's certificate proves, in UTF-8; `nil` for none.
    package var certificateName: [UInt8]?
    /// The client's address without its port, as text.
    package var address: String

    package init(
        userName: [UInt8], clientIdentifier: [UInt8], password: [UInt8],
        certificateName: [UInt8]? = nil, address: String
    ) {
        self.userName = userName
        self.clientIdentifier = clientIdentifier
        self.password = password
        self.certificateName = certificateName
        self.address = address
    }

    /// The JSON document of the request. A password that is no UTF-8 comes in base 64 under another
    /// name.
    package var body: [UInt8] {
        var body: [UInt8] = []
        func add(_ name: String, _ value: some Sequence<UInt8>) {
            body += Array((body.isEmpty ? "{\"" : ",\"").utf8) + Array(name.utf8)
            body += Array("\":\"".utf8)
            for byte in value { Self.escape(byte, &body) }
            body.append(UInt8(ascii: "\""))
        }
        add("user_name", userName)
        add("client_id", clientIdentifier)
        if String(validating: password, as: UTF8.self) != nil {
            add("password", password)
        } else {
            add("password_base64", Self.base64(password))
        }
        if let certificateName { add("certificate_name", certificateName) }
        add("address", address.utf8)
        body.append(UInt8(ascii: "}"))
        return body
    }

    /// A digest of everything asked. The key is random and of this process, so that nobody who reads
    /// memory finds a password by trying likely ones elsewhere.
    package func digest(_ key: [UInt8]) -> SHA256Digest {
        var message = key
        var parts = [userName, clientIdentifier, password, Array(address.utf8)]
        if let certificateName { parts.append(certificateName) }
        for part in parts {
            // With its length, so that no two questions have the same bytes.
            withUnsafeBytes(of: UInt64(part.count).littleEndian) { message += $0 }
            message += part
        }
        return SHA256Digest(of: message)
    }

    // MARK: JSON

    /// MQTT's strings are UTF-8; control characters, quotes and backslashes are escaped (RFC 8259).
    private static func escape(_ byte: UInt8, _ body: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): body += [UInt8(ascii: "\\"), byte]
        case 0..<0x20, 0x7F:
            let digits = Array(String(byte, radix: 16).utf8)
            body += Array("\\u00".utf8)
            body += digits.count == 1 ? [UInt8(ascii: "0")] + digits : digits
        default: body.append(byte)
        }
    }

    private static func base64(_ bytes: [UInt8]) -> [UInt8] {
        let alphabet = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let number = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * (3 - group.count))
            for place in 0..<4 {
                text.append(
                    place <= group.count
                        ? alphabet[Int(number >> (18 - 6 * UInt32(place)) & 0x3F)]
                        : UInt8(ascii: "="))
            }
        }
        return text
    }
}
