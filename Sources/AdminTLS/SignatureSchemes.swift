/// The signatures that both ends of HTTPS accept by the key of the other end's certificate.
package enum SignatureSchemes {
    /// Numbers of RFC 8446, section 4.2.3, the most wanted first: what BoringSSL takes by itself,
    /// and P-521 and Ed25519 with it, as OpenSSL's clients do.
    package static let taken: [UInt16] = [
        0x0403,  // ecdsa_secp256r1_sha256
        0x0807,  // ed25519
        0x0804,  // rsa_pss_rsae_sha256
        0x0401,  // rsa_pkcs1_sha256
        0x0503,  // ecdsa_secp384r1_sha384
        0x0805,  // rsa_pss_rsae_sha384
        0x0501,  // rsa_pkcs1_sha384
        0x0603,  // ecdsa_secp521r1_sha512
        0x0806,  // rsa_pss_rsae_sha512
        0x0601,  // rsa_pkcs1_sha512
    ]
}
