import Credentials
import Glibc
import OperatorConfiguration
import PlainText

extension HermesConfiguration {
    /// The token file: the one that is named, or that of the data directory.
    package var tokensPath: String {
        admin.tokensFile ?? "\(dataDirectory)/\(TokenFile.defaultName)"
    }
}

/// What a data directory must be like before a broker goes in.
package enum DataFolder {
    /// Why the folder cannot be used.
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
                "\(path) \(what): \(String(cString: strerror(code))). \(cure)",
                isTransient: SystemFailure(action: "", path: "", errno: code).isTransient)
        }
    }

    /// Judges the folder if it is there; one that is not is made at the start.
    ///
    /// - Parameters:
    ///   - path: The folder; a link is followed.
    ///   - owner: Whose it must be; `nil` leaves that to the start, where it is known who runs the
    ///     broker.
    /// - Throws: ``Unusable`` for anything but a folder, one that others own or may enter, and a link
    ///   that leads nowhere.
    package static func check(_ path: String, owner: uid_t?) throws(Unusable) {
        let shown = VisibleText.escaped(path)
        var status = stat()
        guard stat(path, &status) == 0 else {
            guard errno == ENOENT else {
                throw Unusable(
                    path, "cannot be opened", errno: errno, cure: "Check its permissions.")
            }
            guard lstat(path, &status) != 0 else {
                // Its disk may not be there yet.
                throw Unusable(
                    "\(shown) is a link to a folder that is not there. Mount its disk, or make the "
                        + "folder.", isTransient: true)
            }
            return
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw Unusable("\(shown) is not a folder. Move it away or name another.")
        }
        // Root may enter any, and would leave files there that their owner cannot open.
        if let owner, status.st_uid != owner {
            throw Unusable(
                "\(shown) belongs to the user with number \(status.st_uid), and hermesd runs as "
                    + "number \(owner). Start it as that user, or run: chown -R \(owner) '\(shown)'"
            )
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw Unusable(
                "\(shown) can be entered by others (mode \(mode)). Run: chmod 700 '\(shown)'")
        }
    }

    /// False when it is the folder that keeps us from what is in it: a file in its place, or one that we
    /// may not enter. Then nothing can be said of the files in it.
    package static func showsItsFiles(_ path: String) -> Bool {
        access("\(path)/.", X_OK) == 0 || (errno != ENOTDIR && errno != EACCES)
    }
}
