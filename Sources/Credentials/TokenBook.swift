/// Finds the token that a request presents, in one state of the token file.
package struct TokenBook: Sendable {
    private let entries: [SHA256Digest: TokenFile.Entry]

    /// The tokens of `file`; later changes need a new book.
    package init(_ file: TokenFile) {
        entries = Dictionary(uniqueKeysWithValues: file.entries.map { ($0.digest, $0) })
    }

    /// The number of tokens.
    package var count: Int { entries.count }

    /// The entry of a token, expired or not; `nil` for an unknown one.
    ///
    /// Only digests are compared, in constant time, under a hash seeded per process, so the time
    /// that a look-up takes tells nothing about the tokens.
    package func entry(of token: some Collection<UInt8>) -> TokenFile.Entry? {
        entries[SHA256Digest(of: token)]
    }
}
