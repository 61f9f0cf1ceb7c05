import MQTTCodec

/// Checks bytes of the store, whose damage no checksum may have shown: what is no topic must not reach
/// a client, which would close its connection.
package enum TopicText {
    /// True for a topic name.
    package static func isName(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let range = ByteRange(offset: 0, count: bytes.count)
        return (try? TopicName(validating: range, in: bytes.bytes)) != nil
    }

    package static func isName(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { isName($0) } }

    /// True for a topic filter.
    static func isFilter(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let range = ByteRange(offset: 0, count: bytes.count)
        return (try? TopicFilter(validating: range, in: bytes.bytes)) != nil
    }
}
