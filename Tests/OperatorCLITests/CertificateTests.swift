import NIOSSL
import Testing

@testable import OperatorCLI

/// A minimal certificate with the fields that contain names.
private func certificate(issuer: [UInt8], subject: [UInt8], version: Bool = true) -> [UInt8] {
    let fields =
        (version ? [0xA0, 3, 2, 1, 2] : []) + [2, 1, 7] + tagged(0x30, [6, 1, 0x2A])
        + tagged(0x30, issuer) + tagged(0x30, []) + tagged(0x30, subject)
    return tagged(0x30, tagged(0x30, fields))
}

private func tagged(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    let length: [UInt8] =
        content.count < 0x80
        ? [UInt8(content.count)] : [0x82, UInt8(content.count >> 8), UInt8(content.count & 0xFF)]
    return [tag] + length + content
}

private func attribute(_ type: UInt8, _ text: String) -> [UInt8] {
    tagged(0x31, tagged(0x30, [6, 3, 0x55, 4, type] + tagged(0x0C, Array(text.utf8))))
}

@Suite("Names in a certificate")
struct CertificateNamesTests {
    private static let country = attribute(6, "DE")
    private static let authority = attribute(3, "Test authority")

    @Test("the issuer is its common name, or else its organisation", arguments: [true, false])
    func issuer(version: Bool) throws {
        let named = certificate(
            issuer: Self.country + attribute(10, "Org") + Self.authority,
            subject: attribute(3, "broker"), version: version)
        let names = try #require(CertificateNames(der: named))
        #expect(names.issuerName == Array("Test authority".utf8))
        #expect(!names.isSelfIssued)
        let organised = certificate(
            issuer: Self.country + attribute(10, "Org"), subject: Self.authority)
        #expect(CertificateNames(der: organised)?.issuerName == Array("Org".utf8))
        let nameless = certificate(issuer: Self.country, subject: Self.authority)
        #expect(try #require(CertificateNames(der: nameless)).issuerName == nil)
    }

    @Test("equal issuer and subject mean self-issued")
    func selfIssued() throws {
        let long = attribute(3, String(repeating: "x", count: 300))
        #expect(
            try #require(CertificateNames(der: certificate(issuer: long, subject: long)))
                .isSelfIssued)
    }

    @Test("whatever is cut or changed gives names or nothing, and never a trap")
    func damaged() {
        let whole = certificate(issuer: Self.authority, subject: Self.country)
        for end in 0..<whole.count { #expect(CertificateNames(der: Array(whole[..<end])) == nil) }
        for index in whole.indices {
            for value: UInt8 in [0x00, 0x1F, 0x30, 0x7F, 0x80, 0x83, 0x84, 0xFF] {
                var bytes = whole
                bytes[index] = value
                _ = CertificateNames(der: bytes)?.issuerName
            }
        }
    }
}

@Suite("Errors of TLS")
struct TLSFailureTests {
    @Test(
        "the library's errors become advice",
        arguments: [
            ("certificate_verify_failed", ClientTLSFailure.untrusted),
            ("wrong_version_number", .notTLS), ("http_request", .notTLS),
            ("tlsv13_alert_certificate_required", .wantsCertificate),
            ("sslv3_alert_handshake_failure", .refused),
            ("unexpected_message", .other("unexpected_message")),
        ])
    func words(word: String, failure: ClientTLSFailure) {
        #expect(ClientTLSFailure(word: word) == failure)
    }

    @Test("every kind of key that a broker's certificate may have is taken")
    func signatures() throws {
        let taken = try #require(ClientTLS().configuration.verifySignatureAlgorithms)
        for one: SignatureAlgorithm in [
            .rsaPssRsaeSha256, .rsaPkcs1Sha256, .ecdsaSecp256R1Sha256, .ecdsaSecp384R1Sha384,
            .ecdsaSecp521R1Sha512, .ed25519,
        ] {
            #expect(taken.contains(one), "\(one)")
        }
        #expect(!taken.contains(.rsaPkcs1Sha1) && !taken.contains(.ecdsaSha1))
    }

    @Test("other errors are none of its business")
    func others() {
        #expect(ClientTLSFailure(CommandFailure(.unreachable, "x")) == nil)
    }

    @Test(
        "an https address gives host and port, any other none",
        arguments: [
            ("https://broker.example", "broker.example", UInt16(443)),
            ("https://broker.example:8443/hermes", "broker.example", 8443),
            ("https://[::1]:8080", "::1", 8080), ("HTTPS://127.0.0.1:1", "127.0.0.1", 1),
        ])
    func authority(url: String, host: String, port: UInt16) throws {
        let authority = try #require(AdminEndpoint(url: url)?.secureAuthority)
        #expect(authority.host == host)
        #expect(authority.port == port)
        #expect(AdminEndpoint(url: "http://127.0.0.1:1")?.secureAuthority == nil)
        #expect(AdminEndpoint.unixSocket(path: "/x").secureAuthority == nil)
        let secure = AdminEndpoint(listeningOn: "::", port: 8080, isSecure: true)
        #expect(secure.url(["v1"]) == "https://[::1]:8080/v1")
    }
}
