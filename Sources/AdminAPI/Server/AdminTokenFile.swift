import BrokerAPI
import Credentials
import Glibc
import SystemFiles

/// The file `admin.token` in the data directory, created at the first start.
package struct AdminTokenFile: Sendable {
    /// The source of a token.
    package enum Origin: Equatable, Sendable {
        case environment
        case read
        case created
    }

    private let directory: String
    /// Path of the file.
    package var path: String { directory + "/" + AdminTokenPlace.fileName }

    /// - Parameter dataDirectory: A directory owned by this process.
    package init(dataDirectory: String) {
        directory = dataDirectory
    }

    /// The token to ask for.
    ///
    /// A new file is written under another name, synced, and then linked to its own, so that a
    /// crash leaves a whole token or none.
    ///
    /// - Parameter environmentValue: The value of ``AdminTokenPlace/variable``; `nil` when it is not
    ///   set. It is used as it is, and the file is not touched.
    /// - Returns: The token, and where it came from.
    /// - Throws: ``AdminTokenError`` when the value or the file is not fit for use.
    package func loadOrCreate(
        environmentValue: String?
    ) throws(AdminTokenError) -> (token: AdminToken, origin: Origin) {
        if let known = try load(environmentValue: environmentValue) { return known }
        let text = TokenSecret.make()
        if try create(text) { return (try AdminToken(text, source: path), .created) }
        // Another process created it in the meantime.
        guard let text = try read() else {
            throw .system(SystemError(call: "open", subject: path, code: ENOENT))
        }
        return (try AdminToken(text, source: path), .read)
    }

    /// The same without creating a file: `nil` when there is neither value nor file.
    package func load(
        environmentValue: String?
    ) throws(AdminTokenError) -> (token: AdminToken, origin: Origin)? {
        if let environmentValue {
            let source = AdminTokenPlace.variable
            return (try AdminToken(environmentValue, source: source), .environment)
        }
        guard let text = try read() else { return nil }
        return (try AdminToken(text, source: path), .read)
    }

    /// The text of the file without its line end; `nil` when there is no file.
    private func read() throws(AdminTokenError) -> String? {
        let status: FileStatus
        var bytes: [UInt8] = []
        do throws(SystemError) {
            let file = try OpenFile(path, flags: O_RDONLY | O_NOFOLLOW)
            status = try file.status()
            if status.isRegularFile {
                bytes = try file.readAll(maximumByteCount: AdminToken.maximumLength + 1)
            }
        } catch {
            switch error.code {
            case ENOENT: return nil
            case ELOOP:
                throw .unsafeFile(
                    path: path, reason: "it is a symbolic link",
                    fix: "Put the file itself there, or set \(AdminTokenPlace.variable).")
            default: throw .system(error)
            }
        }
        try check(status)
        let line = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1).first ?? []
        return String(decoding: line, as: UTF8.self)
    }

    /// Refuses all but a regular file that only this process's user may use, and its group.
    private func check(_ status: FileStatus) throws(AdminTokenError) {
        guard status.isRegularFile else {
            throw .unsafeFile(
                path: path, reason: "it is no regular file",
                fix: "Remove it to have a token made.")
        }
        guard status.owner == geteuid() else {
            throw .unsafeFile(
                path: path,
                reason: "it belongs to user \(status.owner), and the broker runs as \(geteuid())",
                fix: "Give it to the broker's user with chown.")
        }
        guard status.modeOfOthers == 0 else {
            throw .unsafeFile(
                path: path,
                reason: "others may use it (mode \(String(status.mode & 0o777, radix: 8)))",
                fix: "Take the rights away with: chmod 600 \(path)")
        }
    }

    /// False when another process has created the file.
    private func create(_ text: String) throws(AdminTokenError) -> Bool {
        let draft = path + ".new"
        do throws(SystemError) {
            if unlink(draft) != 0, errno != ENOENT {
                throw SystemError(call: "unlink", subject: draft, code: errno)
            }
            let file = try OpenFile(draft, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
            defer { unlink(draft) }
            try file.writeAll(Array("\(text)\n".utf8))
            try file.synchronize()
            guard link(draft, path) == 0 else {
                if errno == EEXIST { return false }
                throw SystemError(call: "link", subject: path, code: errno)
            }
            try FileChange.synchronizeFolder(directory)
            return true
        } catch {
            throw .system(error)
        }
    }
}
