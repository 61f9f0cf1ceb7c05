import AdminTLS
import Credentials
import NIOSSL
import SystemFiles

/// The contents of the files that the webhook's settings name.
package struct WebhookFiles: Sendable {
    let secret: SigningSecret
    /// `nil` trusts the authorities that the system trusts.
    let authorities: [NIOSSLCertificate]?
    /// The files' stamps from before they were read.
    let stamps: [FileStamp?]

    /// All problems with the files; at least one. Each names setting, file and cure.
    package struct Unusable: FileRefusal, Equatable {
        package let description: String
        package let isTransient: Bool
    }

    /// Reads all files; the error has all problems together.
    package static func load(_ settings: WebhookSettings) throws(Unusable) -> WebhookFiles {
        let stamps = ([settings.secretFile] + [settings.caFile].compactMap { $0 })
            .map { FileStamp(of: $0) }
        var problems: [String] = []
        var isTransient = true
        var secret: SigningSecret?
        do throws(SigningSecret.Unusable) {
            secret = try SigningSecret.load(path: settings.secretFile)
        } catch {
            problems.append("\(settings.section).secret_file: \(error.description)")
            isTransient = error.isTransient
        }
        var authorities: [NIOSSLCertificate]?
        do throws(PEMFile.Unusable) {
            if let file = settings.caFile { authorities = try PEMFile.certificates(file) }
        } catch {
            problems.append("\(settings.section).ca_file: \(error.description)")
            isTransient = isTransient && error.isTransient
        }
        guard problems.isEmpty, let secret else {
            throw Unusable(
                description: problems.joined(separator: "\n"), isTransient: isTransient)
        }
        return WebhookFiles(secret: secret, authorities: authorities, stamps: stamps)
    }

    /// For a connection that checks the receiver's certificate and its name.
    var tls: TLSConfiguration {
        .toService(trusting: authorities)
    }
}
