/// Reads the reason out of BoringSSL's errors, for both ends of HTTPS.
package enum BoringSSLWord {
    /// The reason in `Error: N error:XXXXXXXX:SSL routines:OPENSSL_internal:THE_REASON at
    /// FILE:LINE`, which names a place in the library's source otherwise: `the_reason`. At most 64
    /// characters.
    ///
    /// - Parameter text: An error's description.
    /// - Returns: `nil` when it has another form.
    package static func reason(in text: String) -> String? {
        guard let marker = text.firstRange(of: "OPENSSL_internal:") else { return nil }
        let word = text[marker.upperBound...].prefix { $0 != " " && $0 != ":" }
        return String(word.prefix(64)).lowercased()
    }
}
