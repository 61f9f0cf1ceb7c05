/// Text that somebody else chose, compared, ordered and hashed by its bytes.
///
/// A `String` is equal to every text that Unicode calls canonically equivalent, so it normalises
/// before it compares and hashes. A run of combining marks costs the square of its length: one name
/// of 100 KB that a client, a token or a JSON document gives keeps a thread busy for ten seconds.
/// Bytes cost their length. They are also what MQTT, JSON, JWT and HTTP compare, none of which knows
/// a normalisation.
///
/// Names from outside are of this type wherever they are keys, are sorted or are compared. The test
/// `ForeignTextTests` of the architecture lists the modules where it looks for `String` instead.
package struct ForeignText: Sendable, ExpressibleByStringLiteral {
    /// The text, for messages and for what takes it apart by bytes.
    package let string: String

    package init(_ text: some StringProtocol) { string = String(text) }

    package init(stringLiteral text: String) { string = text }

    package var utf8: String.UTF8View { string.utf8 }

    package var isEmpty: Bool { string.isEmpty }

    /// Escaped for a message, and cut after `limit` scalars.
    package func visible(limit: Int = 128) -> String { string.visible(limit: limit) }
}

extension ForeignText: Hashable {
    package static func == (left: ForeignText, right: ForeignText) -> Bool {
        left.string.hasBytes(of: right.string)
    }

    package func hash(into hasher: inout Hasher) {
        let isHashed: Void? = utf8.withContiguousStorageIfAvailable {
            hasher.combine(bytes: UnsafeRawBufferPointer($0))
        }
        if isHashed == nil { for byte in utf8 { hasher.combine(byte) } }
        // Texts of several keys have a border between them.
        hasher.combine(0xFF as UInt8)
    }
}

extension ForeignText: Comparable {
    package static func < (left: ForeignText, right: ForeignText) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }
}

extension ForeignText: CustomStringConvertible {
    package var description: String { string }
}

/// What `==`, `hasPrefix` and `split` do for characters, for bytes: in time that is linear in the
/// text whatever it holds. A separator that a combining mark follows stays a separator.
extension StringProtocol {
    /// True when both texts have the same bytes in UTF-8.
    package func hasBytes(of other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }

    /// True when the text begins with the bytes of `prefix`.
    package func begins(with prefix: some StringProtocol) -> Bool {
        utf8.starts(with: prefix.utf8)
    }

    /// The text after `prefix`; `nil` when it begins otherwise.
    package func text(after prefix: some StringProtocol) -> SubSequence? {
        begins(with: prefix) ? self[utf8.index(startIndex, offsetBy: prefix.utf8.count)...] : nil
    }

    /// The parts between blanks and tabs; none of them is empty.
    package var words: [SubSequence] {
        utf8.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            .map { self[$0.startIndex..<$0.endIndex] }
    }

    /// The parts between separators of ASCII.
    package func parts(
        separator: Unicode.Scalar, maxSplits: Int = .max, omittingEmpty: Bool = false
    ) -> [SubSequence] {
        precondition(separator.isASCII, "parts between \(separator), which is not of ASCII")
        let byte = UInt8(ascii: separator)
        var parts: [SubSequence] = []
        var start = startIndex
        var splits = 0
        func take(upTo end: Index) {
            if !omittingEmpty || start < end { parts.append(self[start..<end]) }
        }
        var place = startIndex
        while splits < maxSplits, let end = utf8[place...].firstIndex(of: byte) {
            let isTaken = !omittingEmpty || start < end
            take(upTo: end)
            if isTaken { splits += 1 }
            place = utf8.index(after: end)
            start = place
        }
        take(upTo: endIndex)
        return parts
    }
}
