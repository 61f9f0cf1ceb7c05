import MQTTCodec

extension [UInt8] {
    /// Lets the codec read the bytes. `Array.span` is not there on the oldest systems.
    func read<Value>(
        _ body: (RawSpan) throws(MalformedPacket) -> Value
    ) throws(MalformedPacket) -> Value {
        let result: Result<Value, MalformedPacket> = withUnsafeBytes { buffer in
            do throws(MalformedPacket) {
                return .success(try body(buffer.bytes))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// All of them, as a field.
    var whole: ByteRange { ByteRange(offset: 0, count: count) }
}
