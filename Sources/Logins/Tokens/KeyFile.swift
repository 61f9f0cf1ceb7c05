import COpenSSL
import Glibc
import PlainText
import SystemFiles

/// A file with keys, as the configuration names it.
package enum KeyFile: Hashable, Sendable {
    /// A public key in PEM.
    case publicKey(String)
    /// One line, the secret of HS256.
    case secret(String)
    /// A JSON Web Key Set.
    case keySet(String)

    /// A file cannot be used. The description names it and the cure.
    package struct Unusable: FileRefusal, Equatable {
        package let description: String
        package var isTransient = false
    }

    package var path: String {
        switch self {
        case .publicKey(let path), .secret(let path), .keySet(let path): path
        }
    }

    /// Reads the keys. Nobody but the file's owner may change it, and a file with secrets is read by
    /// its owner and group alone.
    package func load() throws(Unusable) -> KeySet {
        var file: WholeFile
        do throws(WholeFile.Failure) {
            file = try WholeFile(
                path, maximumByteCount: KeySet.longestDocument, isSecret: true)
        } catch {
            let (complaint, cure) = error.words(path, expected: kindName)
            throw Unusable(description: "\(complaint). \(cure)", isTransient: error.isTransient)
        }
        defer { file.bytes.erase() }
        try checkAccess(file.status)
        switch self {
        case .publicKey: return try Self.publicKey(file.bytes, path)
        case .secret: return try Self.secret(file.bytes, path)
        case .keySet: return try keySet(file)
        }
    }

    private var kindName: String {
        switch self {
        case .publicKey: "a PEM file with a public key"
        case .secret: "a file with a secret"
        case .keySet: "a JSON Web Key Set"
        }
    }

    // MARK: Access

    /// Whoever can change a key can make tokens for every user.
    private func checkAccess(_ status: FileStatus) throws(Unusable) {
        let shown = VisibleText.escaped(path)
        guard geteuid() == 0 || status.isOurs else {
            throw Unusable(
                description: """
                    "\(shown)" belongs to user \(status.owner), who could change it. \
                    Run as root: chown \(geteuid()) '\(shown)'
                    """)
        }
        guard status.mode & 0o022 == 0 else {
            throw Unusable(
                description: """
                    "\(shown)" can be changed by others than its owner \
                    (mode 0\(String(status.mode & 0o777, radix: 8))). Run: chmod go-w '\(shown)'
                    """)
        }
        if case .secret = self { try checkSecrecy(status) }
    }

    private func checkSecrecy(_ status: FileStatus) throws(Unusable) {
        guard status.mode & 0o007 == 0 else {
            let shown = VisibleText.escaped(path)
            throw Unusable(
                description: """
                    "\(shown)" can be read by others \
                    (mode 0\(String(status.mode & 0o777, radix: 8))), and who reads its secret can \
                    make tokens. Run: chmod 600 '\(shown)'
                    """)
        }
    }

    // MARK: Contents

    private func keySet(_ file: WholeFile) throws(Unusable) -> KeySet {
        let keys: KeySet
        do throws(KeySet.Malformed) {
            keys = try KeySet(document: file.bytes, allowsSecrets: true)
        } catch {
            throw Unusable(
                description: """
                    \(VisibleText.quoted(path)): \(error.reason). Give a JSON Web Key Set (RFC 7517), \
                    as the login service publishes it
                    """)
        }
        if keys.keys.contains(where: { $0.algorithm == .hs256 }) {
            try checkSecrecy(file.status)
        }
        return keys
    }

    private static func secret(_ bytes: [UInt8], _ path: String) throws(Unusable) -> KeySet {
        var end = bytes.count
        if end > 0, bytes[end - 1] == UInt8(ascii: "\n") { end -= 1 }
        if end > 0, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
        let secret = bytes[..<end]
        guard VerificationKey.secretByteCounts.contains(secret.count),
            secret.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            let shown = VisibleText.escaped(path)
            throw Unusable(
                description: """
                    "\(shown)" holds no secret for HS256: it must be one line of \
                    \(VerificationKey.secretByteCounts.lowerBound) to \
                    \(VerificationKey.secretByteCounts.upperBound) letters, digits and signs. \
                    Run: (umask 077; openssl rand -hex 32 > '\(shown)')
                    """)
        }
        return KeySet([VerificationKey(identifier: nil, secret: secret)])
    }

    private static func publicKey(_ bytes: [UInt8], _ path: String) throws(Unusable) -> KeySet {
        let encoded = bytes.withUnsafeBytes { bytes -> [UInt8]? in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, CInt(bytes.count)) else {
                return nil
            }
            defer { BIO_free(bio) }
            guard let key = PEM_read_bio_PUBKEY(bio, nil, nil, nil) else { return nil }
            defer { EVP_PKEY_free(key) }
            let count = i2d_PUBKEY(key, nil)
            guard count > 0 else { return nil }
            var encoded = [UInt8](repeating: 0, count: Int(count))
            let written = encoded.withUnsafeMutableBufferPointer { bytes in
                var place = bytes.baseAddress
                return i2d_PUBKEY(key, &place)
            }
            return written == count ? encoded : nil
        }
        ERR_clear_error()
        let shown = VisibleText.escaped(path)
        guard let encoded else {
            let isPrivate = String(decoding: bytes, as: UTF8.self).contains("PRIVATE KEY-----")
            throw Unusable(
                description: isPrivate
                    ? """
                    "\(shown)" holds a private key, which belongs to the login service alone. Give \
                    its public part: openssl pkey -in '\(shown)' -pubout
                    """
                    : """
                    "\(shown)" holds no public key in PEM (-----BEGIN PUBLIC KEY-----). From a \
                    certificate: openssl x509 -in CERTIFICATE -noout -pubkey
                    """)
        }
        do throws(VerificationKey.Unusable) {
            return KeySet([try VerificationKey(identifier: nil, encoded: encoded)])
        } catch {
            throw Unusable(
                description: """
                    "\(shown)": \(error.reason). Give the public key of an RSA key of at least 2048 \
                    bits (RS256), of P-256 (ES256) or of Ed25519 (EdDSA)
                    """)
        }
    }
}
