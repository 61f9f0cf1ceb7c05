import AdminTLS
import Credentials
import NIOSSL
import SystemFiles

/// The contents of the files that the settings name.
package struct LoginServiceFiles: Sendable {
    /// The value of the header `Authorization`; `nil` for none.
    let authorization: String?
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
    package static func load(
        _ settings: LoginServiceSettings
    ) throws(Unusable) -> LoginServiceFiles {
        let stamps = [settings.tokenFile, settings.caFile].map { $0.flatMap { FileStamp(of: $0) } }
        var problems: [String] = []
        var isTransient = true
        var authorization: String?
        do throws(SigningSecret.Unusable) {
            if let file = settings.tokenFile {
                authorization = "Bearer \(try SigningSecret.load(path: file).text)"
            }
        } catch {
            problems.append("auth.http.token_file: \(error.description)")
            isTransient = error.isTransient
        }
        var authorities: [NIOSSLCertificate]?
        do throws(PEMFile.Unusable) {
            if let file = settings.caFile { authorities = try PEMFile.certificates(file) }
        } catch {
            problems.append("auth.http.ca_file: \(error.description)")
            isTransient = isTransient && error.isTransient
        }
        guard problems.isEmpty else {
            throw Unusable(
                description: problems.joined(separator: "\n"), isTransient: isTransient)
        }
        return LoginServiceFiles(
            authorization: authorization, authorities: authorities, stamps: stamps)
    }

    /// True when the files differ from those of another reading.
    package func isOther(than other: LoginServiceFiles) -> Bool { stamps != other.stamps }

    /// For a connection that checks the service's certificate and its name.
    var tls: TLSConfiguration {
        .toService(trusting: authorities)
    }
}
