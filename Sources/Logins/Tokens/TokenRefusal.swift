import Credentials
import PlainText

/// The reason why a token is not accepted, for the log and for `hermesctl`. Its texts hold nothing
/// that a peer could use, and no part of a signature; foreign text is escaped and cut.
package enum TokenRefusal: Error, Hashable, Sendable {
    /// No token, or none in the compact form of a signed one.
    case malformed(String)
    /// The header says what we do not take, or what we would have to understand.
    case header(String)
    /// No key of the set is named so.
    case unknownKey(ForeignText)
    /// The token names no key, and several keys could be meant.
    case ambiguousKey
    /// The header's algorithm is not that of the key.
    case wrongAlgorithm(asked: ForeignText, key: TokenAlgorithm?)
    case badSignature
    /// A claim is missing, or has the wrong type or form.
    case claim(String)
    /// UNIX seconds.
    case expired(at: Int64)
    case notYetValid(from: Int64)
    case wrongIssuer(String)
    case wrongAudience(String)
    /// The user name in CONNECT is not the one that the token names.
    case otherUser(String)

    /// The longest piece of foreign text that a reason quotes, in characters.
    private static let longestQuote = 64

    /// Foreign text, escaped and cut, in quotes.
    static func quoted(_ text: ForeignText) -> String {
        "\"\(text.visible(limit: longestQuote))\""
    }

    /// The same for a text of the operator's or of this program.
    static func quoted(_ text: String) -> String { quoted(ForeignText(text)) }
}

extension TokenRefusal {
    /// One word for counters and JSON; the same for all refusals of one kind.
    package var name: String {
        switch self {
        case .malformed: "malformed"
        case .header: "header"
        case .unknownKey: "unknown_key"
        case .ambiguousKey: "ambiguous_key"
        case .wrongAlgorithm: "wrong_algorithm"
        case .badSignature: "bad_signature"
        case .claim: "claim"
        case .expired: "expired"
        case .notYetValid: "not_yet_valid"
        case .wrongIssuer: "wrong_issuer"
        case .wrongAudience: "wrong_audience"
        case .otherUser: "other_user"
        }
    }
}

extension TokenRefusal: CustomStringConvertible {
    /// A clause without a full stop, such as "its token expired at 2026-11-25T02:00:00Z".
    package var description: String {
        switch self {
        case .malformed(let flaw): "its token is malformed: \(flaw)"
        case .header(let flaw): "its token's header \(flaw)"
        case .unknownKey(let name): "its token is signed by an unknown key, \(Self.quoted(name))"
        case .ambiguousKey: "its token names no key, and there are several that it could mean"
        case .wrongAlgorithm(let asked, let key?):
            "its token asks for \(Self.quoted(asked)), and its key is for \(key.rawValue)"
        case .wrongAlgorithm(let asked, nil):
            "its token asks for \(Self.quoted(asked)), for which there is no key"
        case .badSignature: "its token's signature is wrong"
        case .claim(let flaw): "its token's \(flaw)"
        case .expired(let seconds): "its token expired at \(UTCTime(clamping: seconds))"
        case .notYetValid(let seconds):
            "its token is valid only from \(UTCTime(clamping: seconds))"
        case .wrongIssuer(let issuer): "its token is of the issuer \(issuer)"
        case .wrongAudience(let audience): "its token is for \(audience)"
        case .otherUser(let name):
            "its token is for the user \(Self.quoted(name)), and CONNECT names another"
        }
    }
}
