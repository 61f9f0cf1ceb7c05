import PlainText

/// A user name that is safe in a password file and in topic patterns.
///
/// 1 to 256 bytes of UTF-8 without `:` (it ends the name in the file), without `/`, `+` and `#`
/// (a name put into a topic pattern would widen it), without control, format and other invisible
/// characters, and without blanks at either end. Names compare by their bytes: MQTT knows no
/// Unicode normalisation, and neither do we.
package struct UserName: Hashable, Sendable {
    /// The longest name, in bytes of UTF-8.
    package static let maximumByteCount = 256

    package let bytes: [UInt8]

    /// Checks the rules above; throws for the first broken one.
    package init(_ bytes: some Collection<UInt8>) throws(UserNameError) {
        guard !bytes.isEmpty else { throw .empty }
        guard bytes.count <= Self.maximumByteCount else { throw .tooLong(byteCount: bytes.count) }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .notUTF8 }
        for scalar in text.unicodeScalars {
            if Self.isReserved(scalar) { throw .reservedCharacter(Character(scalar)) }
            if VisibleText.isHidden(scalar) { throw .invisibleCharacter(codePoint: scalar.value) }
        }
        guard let first = text.unicodeScalars.first, let last = text.unicodeScalars.last,
            !first.properties.isWhitespace, !last.properties.isWhitespace
        else { throw .blankAtEnd }
        self.bytes = Array(bytes)
    }

    /// Checks a name given as text, such as an argument.
    package init(_ text: String) throws(UserNameError) {
        try self.init(Array(text.utf8))
    }

    /// The name without escapes.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    private static func isReserved(_ scalar: UnicodeScalar) -> Bool {
        scalar == ":" || scalar == "/" || scalar == "+" || scalar == "#"
    }
}

extension UserName: CustomStringConvertible {
    /// The name with unsafe characters escaped.
    package var description: String { VisibleText.escaped(text) }
}

/// The reason for which some bytes are no user name; the description says how to choose one.
package enum UserNameError: Error, Equatable, CustomStringConvertible {
    case empty
    case tooLong(byteCount: Int)
    case notUTF8
    case reservedCharacter(Character)
    case invisibleCharacter(codePoint: UInt32)
    case blankAtEnd

    package var description: String {
        switch self {
        case .empty:
            "the user name is empty. Give it at least one character."
        case .tooLong(let byteCount):
            "the user name has \(byteCount) bytes. Use at most \(UserName.maximumByteCount)."
        case .notUTF8:
            "the user name is not valid UTF-8. Write it in UTF-8."
        case .reservedCharacter(let character):
            "the user name contains \"\(character)\". Leave out the characters : / + and #."
        case .invisibleCharacter(let codePoint):
            """
            the user name contains the invisible character \
            U+\(String(codePoint, radix: 16, uppercase: true)). Leave it out.
            """
        case .blankAtEnd:
            "the user name begins or ends with a blank. Leave the blank out."
        }
    }
}
