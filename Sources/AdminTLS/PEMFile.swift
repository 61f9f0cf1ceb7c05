import NIOSSL
import PlainText
import SystemFiles

/// Reads the PEM files of HTTPS, for the broker and for `hermesctl`.
package enum PEMFile {
    /// The largest file in bytes. A chain has some 5 KB, a bundle of all public authorities some
    /// 200 KB.
    private static let mostBytes = 4 << 20

    /// A file cannot be used. The description names it and the cure.
    package struct Unusable: FileRefusal {
        package let description: String
        package var isTransient = false
    }

    /// All certificates in a file; at least one.
    package static func certificates(_ path: String) throws(Unusable) -> [NIOSSLCertificate] {
        let file = try read(path)
        let found = (try? NIOSSLCertificate.fromPEMBytes(file.bytes)) ?? []
        guard !found.isEmpty else {
            throw Unusable(
                description: """
                    \(VisibleText.quoted(path)) holds no certificate in PEM. Give a file with a \
                    part that begins with "-----BEGIN CERTIFICATE-----".
                    """)
        }
        return found
    }

    /// The private key in a file. With `isGuarded`, a file is refused that anyone but its owner and
    /// its group may read, or anyone but its owner may write.
    package static func privateKey(
        _ path: String, isGuarded: Bool
    ) throws(Unusable) -> NIOSSLPrivateKey {
        let file = try read(path)
        guard !PEMKind.isCertificateWithoutKey(file.bytes) else {
            throw Unusable(
                description: "\(VisibleText.quoted(path)) holds a certificate and no key. "
                    + PEMKind.swappedCure)
        }
        guard !isGuarded || file.status.mode & 0o027 == 0 else {
            throw Unusable(
                description: """
                    \(VisibleText.quoted(path)) can be read by others, or changed by its group \
                    (mode 0\(String(file.status.mode & 0o777, radix: 8))). \
                    Run: chmod 600 '\(VisibleText.escaped(path))'
                    """)
        }
        guard let key = try? NIOSSLPrivateKey(bytes: file.bytes, format: .pem) else {
            throw Unusable(
                description: """
                    \(VisibleText.quoted(path)) holds no private key in PEM that can be read. Give \
                    an RSA, ECDSA or Ed25519 key without a passphrase.
                    """)
        }
        return key
    }

    private static func read(_ path: String) throws(Unusable) -> WholeFile {
        do throws(WholeFile.Failure) {
            return try WholeFile(path, maximumByteCount: mostBytes)
        } catch {
            let (complaint, cure) = error.words(path, expected: "a PEM file")
            throw Unusable(description: "\(complaint). \(cure)", isTransient: error.isTransient)
        }
    }
}
