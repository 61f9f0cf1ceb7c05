import Credentials
import Glibc
import OperatorConfiguration
import PlainText
import SystemFiles

extension HermesConfiguration {
    /// Path of the token file: the configured one, or `tokens` in the data directory.
    package var tokensPath: String {
        admin.tokensFile ?? "\(dataDirectory)/\(TokenFile.defaultName)"
    }

    /// The setting that names the token file; `nil` when it lies in the data directory.
    package var tokensSetting: String? { admin.tokensFile.map { _ in "admin.tokens_file" } }
}

/// The conditions that a data directory must meet before a broker uses it.
package enum DataFolder {
    /// A folder cannot be used as data directory.
    package struct Unusable: FileRefusal, Equatable {
        package let description: String
        package let isTransient: Bool

        package init(_ description: String, isTransient: Bool = false) {
            self.description = "data_directory: \(description)"
            self.isTransient = isTransient
        }

        /// A system call on `path` failed.
        package init(_ path: String, _ what: String, errno code: CInt, cure: String) {
            let path = VisibleText.escaped(path)
            self.init(
                "\(path) \(what): \(SystemError.words(for: code)). \(cure)",
                isTransient: SystemError(call: "", subject: "", code: code).isTransient)
        }
    }

    /// Checks the folder if it exists; a start creates a missing one.
    ///
    /// - Parameters:
    ///   - path: The folder; a link is followed.
    ///   - owner: The user that must own it. `nil` leaves this check to the start, which knows the
    ///     broker's user.
    /// - Throws: ``Unusable`` for anything but a folder, for a folder that others own or can enter,
    ///   and for a link that leads nowhere.
    package static func check(_ path: String, owner: uid_t?) throws(Unusable) {
        let shown = VisibleText.escaped(path)
        guard let status = FileStatus(of: path) else {
            guard errno == ENOENT else {
                throw Unusable(
                    path, "cannot be opened", errno: errno, cure: "Check its permissions.")
            }
            guard FileStatus(ofLink: path) == nil else {
                // The folder's disk may not be mounted yet.
                throw Unusable(
                    "\(shown) is a link to a folder that is not there. Mount its disk, or make the "
                        + "folder.", isTransient: true)
            }
            try checkParent(path)
            return
        }
        guard status.isFolder else {
            throw Unusable("\(shown) is not a folder. Move it away or name another.")
        }
        // Root can enter any folder, but would leave files there that their owner cannot open.
        if let owner, status.owner != owner, !(status.owner == 0 && isVolumeOfGroup(status)) {
            if status.owner == 0, geteuid() != 0, access(path, W_OK) == 0 {
                throw Unusable(
                    "\(shown) belongs to root, and others may write to it. Name a folder in it, "
                        + "which the broker makes: data_directory: \(shown)/data")
            }
            throw Unusable(
                "\(shown) belongs to the user with number \(status.owner), and hermesd runs as "
                    + "number \(owner). Start it as that user, or run: chown -R \(owner) '\(shown)'"
            )
        }
        guard status.mode & 0o077 == 0 || isVolumeOfGroup(status) else {
            let mode = String(status.mode & 0o777, radix: 8)
            throw Unusable(
                "\(shown) can be entered by others (mode \(mode)). Run: chmod 700 '\(shown)'")
        }
    }

    /// A start makes the folder itself, and nothing above it: a parent that is missing may be a disk
    /// that is not mounted.
    private static func checkParent(_ path: String) throws(Unusable) {
        var end = path.utf8.endIndex
        let bytes = path.utf8
        func back(while isPassed: (UInt8) -> Bool) {
            while end > bytes.startIndex, isPassed(bytes[bytes.index(before: end)]) {
                end = bytes.index(before: end)
            }
        }
        back { $0 == UInt8(ascii: "/") }
        back { $0 != UInt8(ascii: "/") }
        back { $0 == UInt8(ascii: "/") }
        let parent = String(path[..<end])
        guard !parent.isEmpty else { return }
        guard let status = FileStatus(of: parent) else {
            throw Unusable(
                parent, "cannot be opened", errno: errno,
                cure: "Mount its disk, or make the folder; the broker makes only the last one, "
                    + VisibleText.escaped(path) + ".")
        }
        guard !status.isFolder else { return }
        throw Unusable("\(VisibleText.escaped(parent)) is not a folder. Name another.")
    }

    /// True for the root of a volume that root made for a group of this process, as Kubernetes does
    /// with `fsGroup`: setgid, and written to by that group and by nobody else. Others may list it;
    /// the files that the broker makes in it are its own user's alone.
    private static func isVolumeOfGroup(_ status: FileStatus) -> Bool {
        status.isOfOwnGroup && status.mode & 0o2070 == 0o2070 && status.mode & 0o002 == 0
    }

    /// False when the folder itself hides its files: a file in its place, or a folder that this
    /// user cannot enter. Nothing can be said about the files then.
    package static func showsItsFiles(_ path: String) -> Bool {
        access("\(path)/.", X_OK) == 0 || (errno != ENOTDIR && errno != EACCES)
    }
}
