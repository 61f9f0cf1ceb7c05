import Glibc
import PlainText

/// The contents of a file that others could have planted or changed, read whole and within a bound.
package struct WholeFile: Sendable {
    package var bytes: [UInt8]
    package let status: FileStatus

    /// The reason for which a file is not read.
    package enum Failure: Error, Equatable, Sendable {
        case missing
        case notRegularFile(isFolder: Bool)
        /// The path is a symbolic link, and it or its target belongs to that user.
        case foreignLink(owner: uid_t)
        case tooLarge(byteCount: Int)
        case system(SystemError)

        package var isTransient: Bool {
            switch self {
            case .system(let error): error.isTransient
            case .missing, .notRegularFile, .foreignLink, .tooLarge: false
            }
        }

        /// The complaint, without a full stop, and the cure. `expected` is the kind of file that is
        /// wanted, such as "a PEM file".
        package func words(
            _ path: String, expected: String
        ) -> (complaint: String, cure: String) {
            let file = VisibleText.quoted(path)
            return switch self {
            case .missing:
                ("there is no file \(file)", "Correct the path, or write the file.")
            case .notRegularFile:
                ("\(file) is no regular file", "Give the path of \(expected).")
            case .foreignLink(let owner):
                (
                    "\(file) \(Self.linkComplaint(owner))",
                    "Name the file itself, or make the link as the user that runs hermesd or as root."
                )
            case .tooLarge(let byteCount):
                (
                    "\(file) has \(byteCount) bytes, too many for \(expected)",
                    "Give the path of \(expected)."
                )
            case .system(let error):
                ("cannot \(error.verb) \(file): \(SystemError.reason(for: error.code))", error.cure)
            }
        }

        /// The complaint of ``foreignLink(owner:)``, as it stands behind the file's name.
        package static func linkComplaint(_ owner: uid_t) -> String {
            "is a symbolic link, and it or what it leads to belongs to user \(owner)"
        }
    }

    /// Reads a file.
    ///
    /// A symbolic link is followed only if the link and its target belong to this process's user or
    /// to root. Otherwise a stranger who can plant a link would choose what is read.
    ///
    /// - Parameters:
    ///   - path: of the file.
    ///   - maximumByteCount: a larger file is refused.
    ///   - isSecret: leaves no copy of the bytes behind. The caller erases ``bytes``.
    /// - Throws: ``Failure``.
    package init(
        _ path: String, maximumByteCount: Int, isSecret: Bool = false
    ) throws(Failure) {
        let link = Self.link(path)
        let status: FileStatus
        var bytes: [UInt8] = []
        do throws(SystemError) {
            let file = try OpenFile(path)
            status = try file.status()
            if status.isRegularFile, link.map({ $0.isOurs && status.isOurs }) ?? true {
                bytes = try file.readAll(maximumByteCount: maximumByteCount, isSecret: isSecret)
            }
        } catch {
            if error.code == ENOENT { throw .missing }
            throw .system(error)
        }
        if let link { try Self.check(link, target: status) }
        guard status.isRegularFile else { throw .notRegularFile(isFolder: status.isFolder) }
        guard bytes.count <= maximumByteCount else {
            if isSecret { bytes.erase() }
            throw .tooLarge(byteCount: status.size)
        }
        self.bytes = bytes
        self.status = status
    }

    /// Refuses a symbolic link that would not be followed, before the file behind it is changed.
    package static func checkLink(_ path: String) throws(Failure) {
        guard let link = link(path) else { return }
        try check(link, target: FileStatus(of: path))
    }

    /// The symbolic link itself; `nil` if the path is none.
    private static func link(_ path: String) -> FileStatus? {
        FileStatus(ofLink: path).flatMap { $0.isLink ? $0 : nil }
    }

    private static func check(_ link: FileStatus, target: FileStatus?) throws(Failure) {
        for status in [link, target ?? link] where !status.isOurs {
            throw .foreignLink(owner: status.owner)
        }
    }
}
