import PlainText

/// The name of a token in the token file, the log and the answers: 1 to 64 ASCII letters, digits,
/// `.`, `_` and `-`, so that it can stand anywhere unescaped.
package struct TokenName: Hashable, Sendable, CustomStringConvertible {
    package static let maximumByteCount = 64
    /// The token of `admin.token` and `HERMES_ADMIN_TOKEN`, which is not in the token file.
    package static let admin = TokenName(unchecked: "admin")

    package let text: String
    /// Eight bytes of the SHA-256 digest, which stand for the name where it would be too long. It is
    /// made once, with the entry of the token.
    package let digest: UInt64

    /// Checks the rules above, and that the name is not ``admin``.
    package init(_ text: some StringProtocol) throws(TokenNameError) {
        if text.isEmpty { throw .empty }
        guard text.utf8.count <= Self.maximumByteCount else { throw .tooLong }
        guard text.utf8.allSatisfy(Self.isAllowed) else { throw .forbiddenCharacter }
        guard !text.hasBytes(of: Self.admin.text) else { throw .reserved }
        self.init(unchecked: String(text))
    }

    private init(unchecked text: String) {
        self.text = text
        digest = Self.digest(of: text)
    }

    /// ``digest`` of a name.
    package static func digest(of text: String) -> UInt64 {
        UInt64(truncatingIfNeeded: SHA256Digest(of: text.utf8).leading)
    }

    package var description: String { text }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "-"):
            true
        default: false
        }
    }
}

/// The reason for which a text is no token's name; the description says how to choose one.
package enum TokenNameError: Error, Equatable, CustomStringConvertible {
    case empty
    case tooLong
    case forbiddenCharacter
    case reserved

    package var description: String {
        switch self {
        case .empty: "the name of the token is empty. Give it at least one character."
        case .tooLong:
            "the name of the token is too long. Use at most \(TokenName.maximumByteCount) characters."
        case .forbiddenCharacter:
            """
            the name of the token holds other characters than letters, digits, ".", "_" and "-". \
            Leave them out.
            """
        case .reserved:
            """
            the name "\(TokenName.admin)" is that of the token in admin.token. Choose another.
            """
        }
    }
}
