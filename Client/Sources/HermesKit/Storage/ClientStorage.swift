import HermesClientCore

/// The place of the client's log.
protocol ClientStorage: AnyObject {
    /// Appends a frame; to an empty log behind the header.
    func append(_ frame: [UInt8]) throws(StorageError)
    /// Replaces the whole log: afterwards it is the old one or the new one, never a part.
    func replace(with file: [UInt8]) throws(StorageError)
    /// The client is gone: nothing is written any more, and nothing may be acknowledged.
    var isReleased: Bool { get }
}

/// Keeps nothing: a restart of the program knows nothing of the session.
final class NoStorage: ClientStorage {
    func append(_ frame: [UInt8]) {}

    func replace(with file: [UInt8]) {}

    let isReleased = false
}

/// The client's file cannot be used.
struct StorageError: Error, Hashable, Sendable {
    /// A sentence that names the file and tells what to do.
    var reason: String
}
