/// The parts of an absolute http or https URL that decide about its safety.
///
/// Refused are a user in the URL, since logs would show the password, a fragment, which HTTP does
/// not send, and bytes that RFC 3986 wants percent-encoded.
struct WebURL: Equatable {
    let isSecure: Bool
    /// With its brackets, if it is an IPv6 address.
    let host: Substring

    /// `nil` for any other text.
    init?(_ text: String) {
        guard text.utf8.count <= 2_048,
            let scheme = ["http://", "https://"].first(where: { text.hasPrefix($0) })
        else { return nil }
        isSecure = scheme == "https://"
        let rest = text.dropFirst(scheme.count)
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard Self.isEncoded(rest.dropFirst(authority.count)),
            let host = Self.host(of: authority)
        else { return nil }
        self.host = host
    }

    private static func host(of authority: Substring) -> Substring? {
        let end: Substring.Index
        if authority.first == "[" {
            guard let closing = authority.firstIndex(of: "]") else { return nil }
            end = authority.index(after: closing)
        } else {
            end = authority.firstIndex(of: ":") ?? authority.endIndex
        }
        let host = authority[..<end]
        let port = authority[end...]
        let isHost =
            host.first == "["
            ? host.dropFirst().dropLast().utf8.allSatisfy {
                isHexadecimal($0) || $0 == 0x3A || $0 == 0x2E
            }
            : host.utf8.allSatisfy { isWord($0) }
        guard isHost, host.count > (host.first == "[" ? 2 : 0) else { return nil }
        guard port.isEmpty || port.dropFirst().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            port.isEmpty || UInt16(port.dropFirst()) ?? 0 > 0
        else { return nil }
        return host
    }

    /// True for a path and a query in which every other byte is percent-encoded.
    private static func isEncoded(_ text: Substring) -> Bool {
        let bytes = Array(text.utf8)
        for (index, byte) in bytes.enumerated() {
            if byte == UInt8(ascii: "%") {
                guard index + 2 < bytes.count, isHexadecimal(bytes[index + 1]),
                    isHexadecimal(bytes[index + 2])
                else { return false }
            } else if !isWord(byte), !"!$&'()*+,;=:@/?".utf8.contains(byte) {
                return false
            }
        }
        return true
    }

    /// A letter, a digit, or one of `-._~`.
    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._~".utf8.contains(byte)
        }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}

extension ValueFormat where Value == String {
    /// An absolute http or https URL.
    static var webURL: Self {
        let expectation = "a URL such as https://office.example/hermes"
        return Self(
            expectation: expectation,
            read: { (text: String) throws(RefusedValue) -> String in
                guard WebURL(text) != nil else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) is no URL of http or https",
                        cure:
                            "Give \(expectation), without user, password and fragment, and with any other byte percent-encoded."
                    )
                }
                return text
            },
            write: { $0 }
        )
    }
}
