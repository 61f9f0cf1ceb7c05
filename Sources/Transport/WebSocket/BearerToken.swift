/// The bearer token in a request for the upgrade (RFC 6750, section 2), by which a client that
/// cannot set the password of its CONNECT says who it is.
///
/// It is read strictly: one token in one place, of the characters that a token may have, in a query
/// whose every name is percent-encoded right. So a proxy in front and the broker find the same
/// token.
struct BearerToken {
    /// The token; `nil` when none has come.
    private(set) var bytes: [UInt8]?
    private var hasAuthorization = false

    /// Takes the query of the request's target, without its question mark.
    mutating func take(query: Slice<UnsafeRawBufferPointer>) throws(WebSocketFlaw) {
        for item in query.split(separator: UInt8(ascii: "&")) {
            let name = item.prefix { $0 != UInt8(ascii: "=") }
            guard try Self.percentDecoded(name) == Array("access_token".utf8) else { continue }
            try set(Self.percentDecoded(item.dropFirst(name.count + 1)))
        }
    }

    /// Takes the value of a header `Authorization`: `Bearer`, in any case, blanks, and the token.
    mutating func take(
        authorization value: Slice<UnsafeRawBufferPointer>
    ) throws(WebSocketFlaw) {
        guard !hasAuthorization else { throw .severalTokens }
        hasAuthorization = true
        let scheme = value.prefix { $0 != UInt8(ascii: " ") }
        guard scheme.map(\.lowercased) == Array("bearer".utf8) else { throw .token }
        try set(Array(value.dropFirst(scheme.count).drop { $0 == UInt8(ascii: " ") }))
    }

    private mutating func set(_ token: [UInt8]) throws(WebSocketFlaw) {
        guard bytes == nil else { throw .severalTokens }
        guard Self.isToken(token) else { throw .token }
        bytes = token
    }

    /// True for one character and more of a token, with `=` at its end only (`b64token`).
    private static func isToken(_ bytes: [UInt8]) -> Bool {
        let end = bytes.lastIndex { $0 != UInt8(ascii: "=") }
        guard let end else { return false }
        return bytes[...end].allSatisfy(\.isBearerTokenByte)
    }

    /// Decodes `%` and two digits (RFC 3986, section 2.1). A plus stays one, as in every part of a
    /// URI.
    private static func percentDecoded(
        _ text: Slice<UnsafeRawBufferPointer>
    ) throws(WebSocketFlaw) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(text.count)
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let high = rest.popFirst()?.hexadecimalDigit,
                let low = rest.popFirst()?.hexadecimalDigit
            else { throw .token }
            decoded.append(high << 4 | low)
        }
        return decoded
    }
}

extension UInt8 {
    fileprivate var hexadecimalDigit: UInt8? {
        switch lowercased {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): lowercased - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    fileprivate var isBearerTokenByte: Bool {
        switch self {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: isBase64Digit
        }
    }
}
