import COpenSSL

/// Reads the user name from a client's certificate.
enum CertificateName {
    /// A certificate from which no user name can be taken.
    enum Flaw: Error, CustomStringConvertible {
        case missing, several, unreadable, tooLong

        var description: String {
            switch self {
            case .missing: "the client's certificate has no common name"
            case .several: "the client's certificate has several common names"
            case .unreadable:
                "the common name of the client's certificate is no text, or has a control character in it"
            case .tooLong: "the common name of the client's certificate is too long for a user name"
            }
        }
    }

    /// The subject's common name, in UTF-8. There must be exactly one, without control characters.
    static func commonName(of certificate: OpaquePointer) -> Result<[UInt8], Flaw> {
        let subject = X509_get_subject_name(certificate)
        let index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1)
        guard index >= 0 else { return .failure(.missing) }
        guard X509_NAME_get_index_by_NID(subject, NID_commonName, index) < 0 else {
            return .failure(.several)
        }
        var text: UnsafeMutablePointer<UInt8>?
        let count = ASN1_STRING_to_UTF8(
            &text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)))
        guard count >= 0, let text else {
            ERR_clear_error()
            return .failure(.unreadable)
        }
        defer { CRYPTO_free(text, #file, 0) }
        guard count > 0 else { return .failure(.missing) }
        guard count <= 65_535 else { return .failure(.tooLong) }
        let bytes = [UInt8](UnsafeBufferPointer(start: text, count: Int(count)))
        guard let name = String(validating: bytes, as: UTF8.self),
            // C0, DEL and C1.
            !name.unicodeScalars.contains(where: {
                $0.value < 0x20 || (0x7F...0x9F).contains($0.value)
            })
        else { return .failure(.unreadable) }
        return .success(bytes)
    }
}
