import PlainText

/// One name and value of a query (`a=1&b=2`), decoded.
package struct QueryItem: Equatable {
    package let name: ForeignText
    package let value: ForeignText

    /// Reads `name=value`, or `name` alone.
    ///
    /// - Returns: `nil` when a part is not percent-encoded UTF-8.
    package init?(_ text: Substring) {
        let bytes = text.utf8
        let end = bytes.firstIndex(of: UInt8(ascii: "=")) ?? bytes.endIndex
        guard let name = percentDecoded(Substring(bytes[..<end])),
            let value = percentDecoded(Substring(bytes[end...].dropFirst()))
        else { return nil }
        self.name = ForeignText(name)
        self.value = ForeignText(value)
    }

    /// The items of a query, still encoded; empty ones are passed over.
    package static func split(_ query: Substring) -> [Substring] {
        // By bytes: a combining character behind an ampersand makes it no other byte.
        query.utf8.split(separator: UInt8(ascii: "&")).map { Substring($0) }
    }
}
