import PlainText

/// New secrets for the HTTP API.
package enum TokenSecret {
    /// The beginning of each token of the token file, by which a program that looks for leaked
    /// secrets recognises one.
    package static let prefix = "hermes_"

    /// 256 random bits in base64url without padding (RFC 4648): 43 characters that are safe in a
    /// header, a URL and a shell.
    package static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        let random = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return Base64.urlText(of: random)
    }
}
