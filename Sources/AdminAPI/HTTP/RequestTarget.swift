/// The path and query of a request line, split but not yet decoded.
///
/// Splitting comes before decoding, so that `%2F` in a client identifier stays part of it.
struct RequestTarget: Equatable {
    /// What stands between the slashes, still percent-encoded.
    var segments: [Substring]
    /// What follows the `?`; `nil` without one.
    var query: Substring?

    /// - Returns: `nil` when the target is not an absolute path, such as the `*` of OPTIONS.
    init?(_ target: String) {
        guard target.utf8.first == UInt8(ascii: "/") else { return nil }
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        segments = parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        query = parts.count > 1 ? parts[1] : nil
    }
}
