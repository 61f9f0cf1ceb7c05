import Credentials
import NIOSSL
import PlainText

/// Explains why a broker's certificate was refused, and what to do.
struct CertificateComplaint {
    /// The certificates, leaf first; may be empty.
    let chain: [NIOSSLCertificate]
    /// The name or address that the operator asked for.
    let host: String
    let endpoint: AdminEndpoint
    let now: UTCTime

    /// The complaint about the chain itself.
    var aboutTrust: String {
        guard let leaf = chain.first else {
            return """
                the certificate of \(endpoint) does not pass the check, and could not be looked \
                at. Look at it with: openssl s_client -connect HOST:PORT
                """
        }
        for (index, certificate) in chain.enumerated() {
            let who =
                index == 0
                ? "the certificate of \(endpoint)"
                : "a certificate that vouches for that of \(endpoint)"
            let start = UTCTime(clamping: Int64(certificate.notValidBefore))
            let end = UTCTime(clamping: Int64(certificate.notValidAfter))
            if now > end {
                return """
                    \(who) expired at \(end). Put a new one in the place of the broker's \
                    admin.tls.certificate and admin.tls.key.
                    """
            }
            if now < start {
                return """
                    \(who) is not valid before \(start), and here it is \(now). Check the clocks \
                    of both machines.
                    """
            }
        }
        let names = (try? leaf.toDERBytes()).flatMap { CertificateNames(der: $0) }
        if let names, names.isSelfIssued {
            return """
                the certificate of \(endpoint) is self-signed: nobody vouches for it. If it is \
                the broker's, copy the file admin.tls.certificate from its machine and name it \
                with --ca-file.
                """
        }
        let issuer = names?.issuerName.map { "\"\(VisibleText.escaped($0))\"" } ?? "an authority"
        return """
            the certificate of \(endpoint) was issued by \(issuer), which is not trusted here. \
            Name that authority's certificate with --ca-file, or see that the broker's file holds \
            all certificates between the two.
            """
    }

    /// The complaint about the name.
    var aboutName: String {
        let names = chain.first.map(Self.names) ?? []
        let list =
            names.isEmpty
            ? "no name at all"
            : names.prefix(10).joined(separator: ", ") + (names.count > 10 ? " and others" : "")
        return """
            the certificate of \(endpoint) is for \(list), and not for \
            "\(VisibleText.escaped(host))". Write one of its names in --url, or have the broker's \
            certificate made for this one too.
            """
    }

    /// The alternative names of the certificate, as a person writes them.
    private static func names(of certificate: NIOSSLCertificate) -> [String] {
        certificate._subjectAlternativeNames().compactMap { name in
            let bytes = Array(name.contents)
            switch name.nameType {
            case .dnsName: return "\"\(VisibleText.escaped(bytes))\""
            case .ipAddress: return address(bytes)
            default: return nil
            }
        }
    }

    private static func address(_ bytes: [UInt8]) -> String? {
        switch bytes.count {
        case 4: return bytes.map(String.init).joined(separator: ".")
        case 16:
            return stride(from: 0, to: 16, by: 2).map { index in
                String(UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1]), radix: 16)
            }.joined(separator: ":")
        default: return nil
        }
    }
}
