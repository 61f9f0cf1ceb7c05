import COpenSSL
import Glibc
import PlainText
import SystemFiles

/// A secret that two parties share to sign and verify what one sends to the other.
package final class SigningSecret: Sendable {
    /// The length of a secret in bytes; the shortest has 64 random bits as hexadecimal digits.
    package static let byteCounts = 16...1_024

    /// A file cannot be used. The description names it and the cure.
    package struct Unusable: FileRefusal, Equatable {
        package let description: String
        package var isTransient = false
    }

    // Nothing changes the bytes after `init`, so any thread may read them.
    nonisolated(unsafe) private let bytes: SecretBytes

    /// - Parameter bytes: Of the length ``byteCounts``.
    package init(_ bytes: some Collection<UInt8>) {
        precondition(Self.byteCounts.contains(bytes.count), "a secret of \(bytes.count) bytes")
        self.bytes = SecretBytes(copying: bytes)
    }

    /// Reads a file of one line, which is the secret. Nobody but the file's owner and group may
    /// read it, and nobody but the owner may change it.
    package static func load(path: String) throws(Unusable) -> SigningSecret {
        var file: WholeFile
        do throws(WholeFile.Failure) {
            file = try WholeFile(
                path, maximumByteCount: byteCounts.upperBound + 2, isSecret: true)
        } catch {
            let (complaint, cure) = error.words(path, expected: "a file with a secret")
            throw Unusable(description: "\(complaint). \(cure)", isTransient: error.isTransient)
        }
        defer { file.bytes.erase() }
        let status = file.status
        let shown = VisibleText.escaped(path)
        guard geteuid() == 0 || status.isOurs else {
            throw Unusable(
                description: """
                    "\(shown)" belongs to user \(status.owner), who could change it. \
                    Run as root: chown \(geteuid()) '\(shown)'
                    """)
        }
        guard status.mode & 0o027 == 0 else {
            throw Unusable(
                description: """
                    "\(shown)" can be read by others, or changed by its group \
                    (mode 0\(String(status.mode & 0o777, radix: 8))). Run: chmod 600 '\(shown)'
                    """)
        }
        if file.bytes.last == UInt8(ascii: "\n") { file.bytes.removeLast() }
        if file.bytes.last == UInt8(ascii: "\r") { file.bytes.removeLast() }
        guard byteCounts.contains(file.bytes.count),
            file.bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw Unusable(
                description: """
                    "\(shown)" holds no secret: it must be one line of \
                    \(byteCounts.lowerBound) to \(byteCounts.upperBound) letters, digits and \
                    signs. Run: (umask 077; openssl rand -hex 32 > '\(shown)')
                    """)
        }
        return SigningSecret(file.bytes)
    }

    /// The secret itself, for a header that shows it to its other party.
    package var text: String { bytes.withBytes { String(decoding: $0, as: UTF8.self) } }

    /// The HMAC-SHA-256 of a message (RFC 2104), as 64 lower-case hexadecimal digits.
    package func signature(of message: [UInt8]) -> String {
        var code = [UInt8](repeating: 0, count: 32)
        let result = bytes.withBytes { key in
            HMAC(
                EVP_sha256(), key.baseAddress, CInt(key.count), message, message.count, &code, nil)
        }
        // Only OpenSSL's configuration can disable it, and TLS would not work then either.
        precondition(result != nil, "libcrypto has no HMAC with SHA-256")
        return Hexadecimal.text(of: code)
    }
}
