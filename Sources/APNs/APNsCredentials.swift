import SystemFiles

/// The contents of the files that the settings name.
package struct APNsCredentials: Sendable {
    /// What proves one team, or one app.
    struct Proof: Sendable {
        let tls: APNsTLS
        /// `nil` with a certificate.
        let key: ProviderKey?
    }

    /// In the order of ``ServiceRoutes/identities``.
    let proofs: [Proof]
    /// The files' stamps from before they were read.
    package let stamps: [FileStamp?]

    /// Reads all files. The error names setting, file and cure.
    package static func load(_ settings: APNsSettings) throws(APNsUnusable) -> APNsCredentials {
        let stamps = settings.stamps
        do throws(ProviderKey.Unusable) {
            var proofs: [Proof] = []
            for identity in ServiceRoutes(settings).identities {
                var key: ProviderKey?
                if case .key(let file, _, _, _) = identity {
                    key = try ProviderKey.load(path: file)
                }
                proofs.append(Proof(tls: try APNsTLS(identity, caFile: settings.caFile), key: key))
            }
            return APNsCredentials(proofs: proofs, stamps: stamps)
        } catch {
            throw APNsUnusable(
                description: "wakes.apns: \(error.description)", isTransient: error.isTransient)
        }
    }
}

/// Files of the settings cannot be used.
package struct APNsUnusable: FileRefusal, Equatable {
    package let description: String
    package var isTransient = false
}

extension APNsSettings {
    /// The files as they are now.
    package var stamps: [FileStamp?] { files.map { FileStamp(of: $0) } }

    /// The files that are read, the token's not.
    private var files: [String] {
        let own = ServiceRoutes(self).identities.flatMap { identity -> [String?] in
            switch identity {
            case .key(let file, _, _, _): [file]
            case .certificate(let file, let keyFile, let passwordFile):
                [file, keyFile, passwordFile]
            }
        }
        return (own + [caFile]).compactMap { $0 }
    }
}
