/// The path and query of a request line, split before decoding, so that `%2F` in a client
/// identifier is no separator.
package struct RequestTarget: Equatable {
    /// The parts between the slashes, still percent-encoded.
    package var segments: [Substring]
    /// The text after the `?`; `nil` without one.
    package var query: Substring?

    /// - Returns: `nil` when the target is not an absolute path, such as the `*` of OPTIONS.
    package init?(_ target: String) {
        // By bytes, because separators are ASCII and `Character` needs table lookups.
        let bytes = target.utf8
        guard bytes.first == UInt8(ascii: "/") else { return nil }
        let end = bytes.firstIndex(of: UInt8(ascii: "?"))
        segments = bytes[..<(end ?? bytes.endIndex)].dropFirst()
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { Substring($0) }
        query = end.map { Substring(bytes[bytes.index(after: $0)...]) }
    }
}
