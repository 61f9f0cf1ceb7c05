import PlainText
import RequestText

/// The header of a token (JOSE header, RFC 7515 section 4), as far as anything of it counts: the
/// algorithm, which must be the key's, and the key's name.
///
/// What would lead to a key that the operator did not name (`jku`, `x5u`, `jwk`, `x5c`) is never
/// read.
struct TokenHeader: Equatable {
    let algorithm: ForeignText
    let keyIdentifier: ForeignText?

    /// The longest name of a key, in bytes of UTF-8.
    static let longestIdentifier = 256

    /// Types of tokens for access and login (RFC 7519 section 5.1, RFC 9068); others, for instance
    /// of events or of proofs of possession, are for other purposes though the same key signs them.
    private static let types: Set<ForeignText> = [
        "jwt", "at+jwt", "application/jwt", "application/at+jwt",
    ]

    init(_ json: [UInt8]) throws(TokenRefusal) {
        var algorithm: ForeignText?
        var keyIdentifier: ForeignText?
        for member in try SignedToken.object(json, "header is") {
            switch (member.name, member.value) {
            case ("alg", .string(let name)): algorithm = name
            case ("alg", _): throw .header("gives an `alg` that is no string")
            case ("kid", .string(let name)):
                guard name.utf8.count <= Self.longestIdentifier else {
                    throw .header("gives a `kid` of \(name.utf8.count) bytes")
                }
                keyIdentifier = name
            case ("kid", _): throw .header("gives a `kid` that is no string")
            case ("typ", .string(let type)):
                guard Self.types.contains(ForeignText(type.string.lowercased())) else {
                    throw .header(
                        "is of the type \(TokenRefusal.quoted(type)), which is for another purpose")
                }
            case ("typ", _): throw .header("gives a `typ` that is no string")
            case ("crit", _):
                throw .header("demands extensions (`crit`), of which none is known here")
            case ("b64", _): throw .header("gives `b64`, a form of its content that is not known")
            case ("enc", _), ("zip", _): throw .header("is one of an encrypted token")
            default: continue
            }
        }
        guard let algorithm else { throw .header("names no algorithm (`alg`)") }
        self.algorithm = algorithm
        self.keyIdentifier = keyIdentifier
    }
}
