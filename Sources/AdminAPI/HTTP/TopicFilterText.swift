import MQTTCodec

/// Topic filters in requests.
enum TopicFilterText {
    /// True for text that MQTT takes as a topic filter (section 4.7).
    static func isFilter(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count <= Int(UInt16.max) else { return false }
        return bytes.withUnsafeBytes { buffer in
            let range = ByteRange(offset: 0, count: buffer.count)
            return (try? TopicFilter(validating: range, in: buffer.bytes)) != nil
        }
    }
}
