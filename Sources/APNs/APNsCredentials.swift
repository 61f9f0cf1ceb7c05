import SystemFiles

/// The contents of the files that the settings name.
package struct APNsCredentials: Sendable {
    let tls: APNsTLS
    /// `nil` with a certificate.
    let key: ProviderKey?
    /// The files' stamps from before they were read.
    package let stamps: [FileStamp?]

    /// Reads all files. The error names setting, file and cure.
    package static func load(_ settings: APNsSettings) throws(APNsUnusable) -> APNsCredentials {
        let stamps = settings.stamps
        do throws(ProviderKey.Unusable) {
            var key: ProviderKey?
            if case .key(let file, _, _, _) = settings.identity {
                key = try ProviderKey.load(path: file)
            }
            return APNsCredentials(tls: try APNsTLS(settings), key: key, stamps: stamps)
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
        let own: [String?] =
            switch identity {
            case .key(let file, _, _, _): [file]
            case .certificate(let file, let keyFile, let passwordFile):
                [file, keyFile, passwordFile]
            }
        return (own + [caFile]).compactMap { $0 }
    }
}
