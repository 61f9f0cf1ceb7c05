import Glibc
import SystemFiles

/// The secret of the administrator.
package struct AdminToken: Sendable, CustomStringConvertible {
    /// Fewest characters of a configured token.
    package static let minimumLength = 16
    /// Most characters, so that it fits a header.
    package static let maximumLength = 512
    /// Fewest different characters, to reject `aaaaaaaaaaaaaaaa`.
    package static let minimumDistinctCharacters = 8

    private let bytes: [UInt8]

    /// - Parameters:
    ///   - text: The secret.
    ///   - source: Its source, for the error.
    /// - Throws: ``AdminTokenError`` when it is empty, weak, or invalid in a header.
    package init(_ text: String, source: String) throws(AdminTokenError) {
        let bytes = Array(text.utf8)
        if bytes.isEmpty { throw .unusable(source: source, reason: "it is empty") }
        // The characters of a bearer token (RFC 6750, section 2.1).
        let allowed = Set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=".utf8)
        if !bytes.allSatisfy(allowed.contains) {
            throw .unusable(
                source: source,
                reason: "it holds characters other than letters, digits and - . _ ~ + / =")
        }
        if bytes.count < Self.minimumLength {
            throw .unusable(
                source: source,
                reason:
                    "it has \(bytes.count) characters; at least \(Self.minimumLength) are needed")
        }
        if bytes.count > Self.maximumLength {
            throw .unusable(
                source: source,
                reason: "it has \(bytes.count) characters; at most \(Self.maximumLength) are taken")
        }
        if Set(bytes).count < Self.minimumDistinctCharacters {
            throw .unusable(
                source: source,
                reason: "it has fewer than \(Self.minimumDistinctCharacters) different characters")
        }
        self.bytes = bytes
    }

    /// Compares in a time that depends on the length of the presented token only.
    package func matches(_ presented: some Collection<UInt8>) -> Bool {
        var difference: UInt8 = presented.count == bytes.count ? 0 : 1
        for (index, byte) in presented.enumerated() {
            difference |= byte ^ bytes[index % bytes.count]
        }
        return difference == 0
    }

    /// Hides the secret.
    package var description: String { "AdminToken(hidden)" }
}

/// The reason for which there is no admin token to use.
package enum AdminTokenError: FileRefusal, Equatable {
    /// The text is too weak for a token, or cannot stand in a header.
    case unusable(source: String, reason: String)
    /// The file is no regular file, or other users own it or may use it.
    case unsafeFile(path: String, reason: String, fix: String)
    /// A system call failed.
    case system(SystemError)

    package var isTransient: Bool {
        switch self {
        case .unusable, .unsafeFile: false
        case .system(let error): error.isTransient
        }
    }

    package var description: String {
        switch self {
        case .unusable(let source, let reason):
            "\(source): the admin token cannot be used: \(reason). "
                + "Set one as long as what `openssl rand -hex 32` prints, or none to have one made."
        case .unsafeFile(let path, let reason, let fix): "\(path): \(reason). \(fix)"
        case .system(let error):
            "\(error.subject): \(error.call) failed: \(SystemError.words(for: error.code)) "
                + "(error \(error.code)). "
                + (error.code == ENOSPC || error.code == EDQUOT
                    ? "The disk is full: free space on this file system."
                    : "Check that the data directory is there and belongs to this user.")
        }
    }
}
