import Credentials
import Glibc

/// The file `admin.token` of a data directory: made at the first start, read at every later one.
package struct AdminTokenFile: Sendable {
    /// Name of the file in the data directory.
    package static let name = "admin.token"
    /// Name of the environment variable that takes precedence over the file.
    package static let environmentVariable = "HERMES_ADMIN_TOKEN"

    /// Where a token came from.
    package enum Origin: Equatable, Sendable {
        case environment
        case read
        case created
    }

    private let directory: String
    /// Path of the file.
    package var path: String { directory + "/" + Self.name }

    /// - Parameter dataDirectory: A directory that belongs to this process alone.
    package init(dataDirectory: String) {
        directory = dataDirectory
    }

    /// The token to ask for.
    ///
    /// A new file is written under another name, synced, and then linked to its own, so that a
    /// crash leaves a whole token or none.
    ///
    /// - Parameter environmentValue: The value of ``environmentVariable``; `nil` when it is not
    ///   set. It is used as it is, and the file is not touched.
    /// - Returns: The token, and where it came from.
    /// - Throws: ``AdminTokenError`` when the value or the file is not fit for use.
    package func loadOrCreate(
        environmentValue: String?
    ) throws(AdminTokenError) -> (token: AdminToken, origin: Origin) {
        if let known = try load(environmentValue: environmentValue) { return known }
        let text = TokenSecret.make()
        if try create(text) { return (try AdminToken(text, source: path), .created) }
        // Someone else made it since we looked.
        guard let text = try read() else { throw failure("open", code: ENOENT) }
        return (try AdminToken(text, source: path), .read)
    }

    /// The same without making anything: `nil` when neither the value nor the file is there.
    package func load(
        environmentValue: String?
    ) throws(AdminTokenError) -> (token: AdminToken, origin: Origin)? {
        if let environmentValue {
            let source = Self.environmentVariable
            return (try AdminToken(environmentValue, source: source), .environment)
        }
        guard let text = try read() else { return nil }
        return (try AdminToken(text, source: path), .read)
    }

    /// The file's text without its line end; `nil` when there is no file.
    private func read() throws(AdminTokenError) -> String? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: return nil
            case ELOOP:
                throw .unsafeFile(
                    path: path, reason: "it is a symbolic link",
                    fix: "Put the file itself there, or set \(Self.environmentVariable).")
            case let code: throw failure("open", code: code)
            }
        }
        defer { close(descriptor) }
        try checkOwnership(descriptor)

        let capacity = AdminToken.maximumLength + 2
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, initializedCount in
            repeat {
                count = Glibc.read(descriptor, buffer.baseAddress, capacity)
            } while count < 0 && errno == EINTR
            initializedCount = max(count, 0)
        }
        if count < 0 { throw failure("read", code: errno) }
        let line = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1).first ?? []
        return String(decoding: line, as: UTF8.self)
    }

    private func checkOwnership(_ descriptor: CInt) throws(AdminTokenError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("fstat", code: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw .unsafeFile(
                path: path, reason: "it is no regular file",
                fix: "Remove it to have a token made.")
        }
        guard status.st_uid == geteuid() else {
            throw .unsafeFile(
                path: path,
                reason: "it belongs to user \(status.st_uid), and the broker runs as \(geteuid())",
                fix: "Give it to the broker's user with chown.")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw .unsafeFile(
                path: path,
                reason: "others may use it (mode \(String(status.st_mode & 0o777, radix: 8)))",
                fix: "Take the rights away with: chmod 600 \(path)")
        }
    }

    /// False when the file came into being meanwhile.
    private func create(_ text: String) throws(AdminTokenError) -> Bool {
        let draft = path + ".new"
        if unlink(draft) != 0, errno != ENOENT { throw failure("unlink", code: errno) }
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("open", code: errno) }
        defer { unlink(draft) }
        let written: AdminTokenError? = writeSynced(text + "\n", to: descriptor)
        close(descriptor)
        if let written { throw written }
        guard link(draft, path) == 0 else {
            if errno == EEXIST { return false }
            throw failure("link", code: errno)
        }
        try syncDirectory()
        return true
    }

    private func writeSynced(_ text: String, to descriptor: CInt) -> AdminTokenError? {
        var remaining = Array(text.utf8)[...]
        while !remaining.isEmpty {
            let count = remaining.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                remaining = remaining.dropFirst(count)
            } else if errno != EINTR {
                return failure("write", code: errno)
            }
        }
        return fsync(descriptor) == 0 ? nil : failure("fsync", code: errno)
    }

    private func syncDirectory() throws(AdminTokenError) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("open", code: errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure("fsync", code: errno) }
    }

    private func failure(_ call: String, code: Int32) -> AdminTokenError {
        .system(call: call, path: path, code: code, reason: String(cString: strerror(code)))
    }
}
