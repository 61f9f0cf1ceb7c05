import Glibc
import PlainText
import SystemFiles

/// A failure of the disk or of stored data, in words for the operator.
///
/// The layers below throw it without logging. The code that decides what happens next logs it once.
public struct StoreFailure: Error, Hashable, Sendable {
    /// The meaning of a failure for the store.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The file system or a quota is full.
        case outOfSpace
        /// Reading, writing or synchronising failed. Data that is not synchronised cannot be
        /// trusted.
        case inputOutput
        /// Stored bytes are not what was written.
        case damaged
        /// A newer version of this program wrote the data.
        case newerFormat
        /// Another process or another connection holds a lock.
        case locked
        /// Wrong owner or mode, or a file system that is mounted read-only.
        case permissions
        case other
    }

    /// The action that failed, as it stands after "cannot", such as `write`.
    public let operation: String
    /// Path of the file or directory.
    public let path: String
    /// The reason in the words of the C library, of SQLite, or of the store.
    public let reason: String
    /// `errno`, or SQLite's extended result code; 0 if neither applies.
    public let code: Int32
    public let kind: Kind
    /// Advice for the operator; `nil` if the reason says enough.
    public let cure: String?

    public init(
        operation: String, path: String, reason: String, code: Int32 = 0, kind: Kind,
        cure: String? = nil
    ) {
        self.operation = operation
        self.path = path
        self.reason = reason
        self.code = code
        self.kind = kind
        self.cure = cure
    }

    /// True when the next start would find the same: data that is damaged, or of a newer version.
    /// What a disk or another program causes may pass by itself.
    public var needsPerson: Bool {
        switch kind {
        case .damaged, .newerFormat: true
        case .outOfSpace, .inputOutput, .locked, .permissions, .other: false
        }
    }

    /// A system call that failed with this `errno`, which also gives the kind and, without `cure`,
    /// the advice.
    public init(operation: String, path: String, errno code: Int32, cure: String? = nil) {
        // The buffer belongs to the C library or the thread, so it is copied here.
        self.init(
            operation: operation, path: path, reason: SystemError.reason(for: code), code: code,
            kind: Self.kind(of: code), cure: cure ?? Self.cure(of: code))
    }

    /// A system call that failed. Unless the attempt is named here, it is the call.
    init(_ error: SystemError, operation: String? = nil) {
        self.init(
            operation: operation ?? (error.call == "fsync" ? "synchronise" : error.verb),
            path: error.subject, errno: error.code)
    }

    private static func kind(of code: Int32) -> Kind {
        switch code {
        case ENOSPC, EDQUOT: .outOfSpace
        case EIO, ENXIO, ENODEV, ESTALE, ETIMEDOUT: .inputOutput
        case EACCES, EPERM, EROFS, ELOOP: .permissions
        case EAGAIN, EBUSY: .locked
        default: .other
        }
    }

    private static func cure(of code: Int32) -> String? {
        switch code {
        case ENOSPC, EDQUOT: "Free space on this file system."
        case EIO, ENXIO, ENODEV, ESTALE, ETIMEDOUT: "Check the disk and the kernel's log."
        case EACCES, EPERM: "Give the user of the broker its own data directory (mode 0700)."
        case EROFS: "Mount the file system writable, or use another data directory."
        case ELOOP: "Replace the symbolic link by the file itself: the store follows none."
        case ENOENT: "Check the path of the data directory."
        case EISDIR, ENOTDIR: "Check the path: a file and a directory are confused."
        case EMFILE, ENFILE: "Raise the limit of open files."
        case EFBIG: "Raise the limit of file sizes."
        default: nil
        }
    }
}

extension StoreFailure: CustomStringConvertible {
    /// One line with action, path, reason and advice.
    public var description: String {
        let what = """
            cannot \(operation) \(VisibleText.quoted(path)): \(VisibleText.escaped(reason))
            """
        return cure.map { "\(what). \($0)" } ?? what
    }
}
