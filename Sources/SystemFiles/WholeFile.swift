import Glibc

/// The contents of a file that others could have planted or changed, read whole and within a bound.
package struct WholeFile: Sendable {
    package var bytes: [UInt8]
    /// The permission bits.
    package let mode: mode_t
    /// User identifier.
    package let owner: uid_t

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
        let status: stat
        var bytes: [UInt8] = []
        do throws(SystemError) {
            let file = try OpenFile(path)
            status = try file.status()
            if status.isRegularFile,
                link.map({ Self.isOurs($0.st_uid) && Self.isOurs(status.st_uid) }) ?? true
            {
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
            throw .tooLarge(byteCount: Int(status.st_size))
        }
        self.bytes = bytes
        mode = status.st_mode & 0o7777
        owner = status.st_uid
    }

    /// Refuses a symbolic link that would not be followed, before the file behind it is changed.
    package static func checkLink(_ path: String) throws(Failure) {
        guard let link = link(path) else { return }
        var target = stat()
        try check(link, target: stat(path, &target) == 0 ? target : nil)
    }

    /// True for this process's user, and for root, who may do everything anyway.
    package static func isOurs(_ owner: uid_t) -> Bool { owner == 0 || owner == geteuid() }

    /// The symbolic link itself; `nil` if the path is none.
    private static func link(_ path: String) -> stat? {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK ? status : nil
    }

    private static func check(_ link: stat, target: stat?) throws(Failure) {
        for owner in [link.st_uid, target?.st_uid ?? 0] where !isOurs(owner) {
            throw .foreignLink(owner: owner)
        }
    }
}
