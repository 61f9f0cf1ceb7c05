/// What proves to Apple who sends: one team, or one app.
struct APNsProof: Sendable {
    let tls: ServiceTLS
    /// `nil` with a certificate.
    let key: ProviderKey?
}

extension APNsSettings {
    /// Reads keys and certificates, in the order of ``identities``.
    func proofs() throws(ProviderKey.Unusable) -> [APNsProof] {
        var proofs: [APNsProof] = []
        for identity in identities {
            var key: ProviderKey?
            if case .key(let file, _, _, _) = identity { key = try ProviderKey.load(path: file) }
            proofs.append(APNsProof(tls: try ServiceTLS(identity, caFile: caFile), key: key))
        }
        return proofs
    }

    /// The files that are read, the token's not.
    var files: [String] {
        let own = identities.flatMap { identity -> [String?] in
            switch identity {
            case .key(let file, _, _, _): [file]
            case .certificate(let file, let keyFile, let passwordFile):
                [file, keyFile, passwordFile]
            }
        }
        return (own + [caFile]).compactMap { $0 }
    }
}
