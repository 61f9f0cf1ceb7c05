import Logging

/// Bytes from a peer (a client identifier, a topic) as a metadata value.
///
/// The log escapes invalid UTF-8 as `\xFF`, byte by byte, where a `String` would replace it. At
/// most `maximumBytes` are copied.
///
///     logger.debug("Session resumed", metadata: ["client.id": .bytes(clientID)])
package struct LoggedBytes: CustomStringConvertible, Sendable {
    /// More than a line shows of any value.
    static let maximumBytes = 4 * LogLine.maximumValueLength + 4

    let kept: [UInt8]
    /// The size of the original; `kept` may be its beginning.
    let totalBytes: Int

    /// Copies the first bytes.
    package init(_ bytes: some Collection<UInt8>) {
        kept = Array(bytes.prefix(Self.maximumBytes))
        totalBytes = bytes.count
    }

    /// The text for other log handlers, with replacement characters.
    package var description: String { String(decoding: kept, as: UTF8.self) }
}

extension Logger.MetadataValue {
    /// Untrusted bytes as metadata, escaped and cut.
    package static func bytes(_ bytes: some Collection<UInt8>) -> Self {
        .stringConvertible(LoggedBytes(bytes))
    }
}
