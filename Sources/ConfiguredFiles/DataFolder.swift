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
            return
        }
        guard status.isFolder else {
            throw Unusable("\(shown) is not a folder. Move it away or name another.")
        }
        // Root can enter any folder, but would leave files there that their owner cannot open.
        if let owner, status.owner != owner {
            throw Unusable(
                "\(shown) belongs to the user with number \(status.owner), and hermesd runs as "
                    + "number \(owner). Start it as that user, or run: chown -R \(owner) '\(shown)'"
            )
        }
        guard status.mode & 0o077 == 0 else {
            let mode = String(status.mode & 0o777, radix: 8)
            throw Unusable(
                "\(shown) can be entered by others (mode \(mode)). Run: chmod 700 '\(shown)'")
        }
    }

    /// False when the folder itself hides its files: a file in its place, or a folder that this
    /// user cannot enter. Nothing can be said about the files then.
    package static func showsItsFiles(_ path: String) -> Bool {
        access("\(path)/.", X_OK) == 0 || (errno != ENOTDIR && errno != EACCES)
    }
}
