import COpenSSL

/// The result of verifying a client's certificate, as small numbers. They suffice to tell later
/// whether the certificate is still valid, and until when it can be.
///
/// A session ticket carries it, because a resumed session has neither the chain nor the result. An
/// open connection keeps it for revocation lists that are loaded later.
public struct VerifiedClient: Equatable, Sendable {
    /// Time at which the first certificate of the chain or the first revocation list expires, in
    /// seconds since 1970.
    let validUntil: Int64
    /// The authority at the end of the chain, by name and key, so that a renewed certificate of the
    /// authority is the same.
    let authority: UInt64
    /// The client's certificate.
    let certificate: UInt64
    /// The certificates between the client's and the authority's; most often none.
    let issuers: [UInt64]

    /// The result of a full handshake in which a client's certificate was accepted; `nil` without
    /// one. For a resumed session use ``init(session:)``.
    init?(_ ssl: OpaquePointer?, listsEndAt: Int64?) {
        let chain = SSL_get0_verified_chain(ssl)
        let count = Int(hermes_chain_count(chain))
        guard count > 0, let leaf = hermes_chain_certificate(chain, 0),
            let last = hermes_chain_certificate(chain, CInt(count - 1))
        else { return nil }
        var validUntil = listsEndAt ?? .max
        var numbers: [UInt64] = []
        for index in 0..<count {
            guard let certificate = hermes_chain_certificate(chain, CInt(index)) else { return nil }
            let end = CertificateTime.seconds(X509_get0_notAfter(certificate)) ?? 0
            validUntil = min(validUntil, end)
            if index > 0, index < count - 1 { numbers.append(CertificateNumber.of(certificate)) }
        }
        self.validUntil = validUntil
        authority = CertificateNumber.ofAuthority(last)
        certificate = CertificateNumber.of(leaf)
        issuers = numbers
    }

    // MARK: In a ticket

    /// The result in the ticket of a resumed session; `nil` when the ticket has none.
    init?(session: OpaquePointer?) {
        var bytes: UnsafeMutableRawPointer?
        var count = 0
        guard SSL_SESSION_get0_ticket_appdata(session, &bytes, &count) == 1 else { return nil }
        self.init(encoded: UnsafeRawBufferPointer(start: bytes, count: count))
    }

    /// Decodes the bytes of a ticket; `nil` when their number is wrong.
    init?(encoded bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 24, bytes.count % 8 == 0 else { return nil }
        func number(_ index: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        }
        validUntil = Int64(bitPattern: number(0))
        authority = number(1)
        certificate = number(2)
        issuers = (3..<(bytes.count / 8)).map(number)
    }

    /// Eight bytes per number, least significant first.
    var encoded: [UInt8] {
        ([UInt64(bitPattern: validUntil), authority, certificate] + issuers).flatMap { number in
            (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
        }
    }
}

/// Certificates as 64-bit numbers. Two certificates with the same number would need an authority
/// that issues both, and would only gain that one of them is refused.
enum CertificateNumber {
    /// The number by issuer and serial number, as revocation lists name a certificate.
    static func of(_ certificate: OpaquePointer) -> UInt64 {
        of(
            issuer: X509_get_issuer_name(certificate),
            serial: X509_get0_serialNumber(certificate))
    }

    /// The number of an entry of a revocation list.
    static func of(
        issuer: OpaquePointer?, serial: UnsafePointer<ASN1_INTEGER>?
    ) -> UInt64 {
        // The hash of the name's canonical form, since the list may encode the name differently.
        let hash = UInt64(X509_NAME_hash_ex(issuer, nil, nil, nil))
        var bytes = (0..<8).map { UInt8(truncatingIfNeeded: hash >> (8 * UInt64($0))) }
        bytes += UnsafeBufferPointer(
            start: ASN1_STRING_get0_data(serial), count: Int(ASN1_STRING_length(serial)))
        return digest(bytes)
    }

    /// The number of an authority, by name and key.
    static func ofAuthority(_ certificate: OpaquePointer) -> UInt64 {
        let hash = UInt64(
            X509_NAME_hash_ex(X509_get_subject_name(certificate), nil, nil, nil))
        var bytes = (0..<8).map { UInt8(truncatingIfNeeded: hash >> (8 * UInt64($0))) }
        var key = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        _ = X509_pubkey_digest(certificate, EVP_sha256(), &key, &count)
        bytes += key
        return digest(bytes)
    }

    private static func digest(_ bytes: [UInt8]) -> UInt64 {
        var result = [UInt8](repeating: 0, count: 32)
        _ = SHA256(bytes, bytes.count, &result)
        return result.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
