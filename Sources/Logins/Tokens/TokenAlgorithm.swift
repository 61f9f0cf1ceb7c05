import PlainText

/// The signatures that are verified (RFC 7518, section 3.1; RFC 8037, section 3.1). There is no
/// `none`, and no algorithm that another key could be used with.
package enum TokenAlgorithm: String, Sendable, CaseIterable {
    /// HMAC with SHA-256: whoever can verify can also sign.
    case hs256 = "HS256"
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    case rs256 = "RS256"
    /// ECDSA on P-256 with SHA-256.
    case es256 = "ES256"
    /// Ed25519.
    case edDSA = "EdDSA"

    /// As a header gives it.
    var name: ForeignText { ForeignText(rawValue) }
}
