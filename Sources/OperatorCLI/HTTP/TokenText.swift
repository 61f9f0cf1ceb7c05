import BrokerAPI
import Credentials
import Glibc
import PlainText
import SystemFiles

/// A token for the HTTP API: one line of visible ASCII.
enum TokenText {
    private static let maximumByteCount = 4_096

    /// Checks a token, so that it cannot add anything to the request. `source` tells in errors
    /// where the token came from.
    static func validated(_ text: String, from source: String) throws(CommandFailure) -> String {
        var bytes = Array(text.utf8)[...]
        while let last = bytes.last, [0x20, 0x09, 0x0A, 0x0D].contains(last) { bytes.removeLast() }
        guard !bytes.isEmpty, bytes.count <= maximumByteCount,
            bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw CommandFailure(
                .unauthorized,
                """
                \(source) holds no token: it must be one line of 1 to \(maximumByteCount) \
                letters, digits and signs. Copy it again from the broker's data directory \
                (\(AdminTokenPlace.fileName)).
                """)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads a token from a file. A failure names the file and the other ways to give a token.
    static func read(path: String) throws(CommandFailure) -> String {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try OpenFile(path, waits: true).readAll(maximumByteCount: maximumByteCount + 2)
        } catch {
            throw CommandFailure(
                .unauthorized,
                """
                cannot read the token file "\(VisibleText.escaped(path))": \
                \(SystemError.reason(for: error.code)). Name the broker's data \
                directory with --data-directory or --config, the file with --token-file, or set \
                \(AdminTokenPlace.variable). A broker writes \(AdminTokenPlace.fileName) into its data \
                directory when it starts for the first time without that variable.
                """)
        }
        return try validated(
            String(decoding: bytes, as: UTF8.self),
            from: "the token file \"\(VisibleText.escaped(path))\"")
    }
}
