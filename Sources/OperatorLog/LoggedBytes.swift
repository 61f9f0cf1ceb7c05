import Logging

/// Bytes from a peer (a client identifier, a topic) as a metadata value.
///
/// Only the log sees that they are bytes: what is not UTF-8 appears as `\xFF`, byte by byte,
/// where a `String` would have replaced it. At most `maximumBytes` are copied.
///
///     logger.debug("Session resumed", metadata: ["client.id": .bytes(clientIdentifier)])
package struct LoggedBytes: CustomStringConvertible, Sendable {
    /// More than a line shows of any value, in the longest encoding of its characters.
    static let maximumBytes = 4 * LogLine.maximumValueLength + 4

    let kept: [UInt8]
    /// The size of the original, of which `kept` may be the beginning.
    let totalBytes: Int

    /// Copies the beginning of the bytes.
    package init(_ bytes: some Collection<UInt8>) {
        kept = Array(bytes.prefix(Self.maximumBytes))
        totalBytes = bytes.count
    }

    /// The text with replacement characters, for other log handlers.
    package var description: String { String(decoding: kept, as: UTF8.self) }
}

extension Logger.MetadataValue {
    /// Untrusted bytes, shown escaped and cut.
    package static func bytes(_ bytes: some Collection<UInt8>) -> Self {
        .stringConvertible(LoggedBytes(bytes))
    }
}
