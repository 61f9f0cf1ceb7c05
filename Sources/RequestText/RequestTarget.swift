/// The path and query of a request line, split but not yet decoded.
///
/// Splitting comes before decoding, so that `%2F` in a client identifier stays part of it.
package struct RequestTarget: Equatable {
    /// What stands between the slashes, still percent-encoded.
    package var segments: [Substring]
    /// What follows the `?`; `nil` without one.
    package var query: Substring?

    /// - Returns: `nil` when the target is not an absolute path, such as the `*` of OPTIONS.
    package init?(_ target: String) {
        // By bytes: what a `Character` is takes tables, and the separators are ASCII.
        let bytes = target.utf8
        guard bytes.first == UInt8(ascii: "/") else { return nil }
        let end = bytes.firstIndex(of: UInt8(ascii: "?"))
        segments = bytes[..<(end ?? bytes.endIndex)].dropFirst()
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { Substring($0) }
        query = end.map { Substring(bytes[bytes.index(after: $0)...]) }
    }
}
