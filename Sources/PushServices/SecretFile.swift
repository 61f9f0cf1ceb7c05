import PlainText
import SystemFiles

/// Reads files with keys and passwords.
enum SecretFile {
    /// The largest file with a key, or with certificates and a key.
    private static let mostBytes = 64 << 10

    /// Reads a file that nobody but its owner and group may read, and nobody but its owner may
    /// write. The caller erases the bytes.
    static func read(
        _ path: String, expected: String
    ) throws(ProviderKey.Unusable) -> [UInt8] {
        var file: WholeFile
        do throws(WholeFile.Failure) {
            file = try WholeFile(path, maximumByteCount: mostBytes, isSecret: true)
        } catch {
            let (complaint, cure) = error.words(path, expected: expected)
            throw ProviderKey.Unusable(
                description: "\(complaint). \(cure)", isTransient: error.isTransient)
        }
        guard file.status.mode & 0o027 == 0 else {
            file.bytes.erase()
            throw ProviderKey.Unusable(
                description: """
                    \(VisibleText.quoted(path)) can be read by others, or changed by its group \
                    (mode 0\(String(file.status.mode & 0o777, radix: 8))). \
                    Run: chmod 600 '\(VisibleText.escaped(path))'
                    """)
        }
        return file.bytes
    }
}
