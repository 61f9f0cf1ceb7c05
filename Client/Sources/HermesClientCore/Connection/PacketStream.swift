import MQTTCodec

/// The bytes of one connection that have come and are not yet a whole packet.
struct PacketStream: Sendable {
    /// A packet that has begun must be whole by then: 1 MiB needs 9 KB/s.
    static let longestPacketMilliseconds: Int64 = 120_000

    private var buffer: [UInt8] = []
    private var begunAt: Int64 = 0
    private let mostPacketBytes: Int

    init(mostPacketBytes: Int) { self.mostPacketBytes = mostPacketBytes }

    /// The time at which the packet that has begun must be whole; `nil` if none has.
    var deadline: Int64? { buffer.isEmpty ? nil : begunAt + Self.longestPacketMilliseconds }

    /// Takes bytes in, and takes the whole packets out: `packets` are their places in `bytes`.
    ///
    /// `fault` tells of bytes behind the last whole packet that cannot become one; the connection
    /// is to be closed after the packets before them.
    mutating func append(
        _ input: [UInt8], at now: Int64
    ) -> (bytes: [UInt8], frames: [PacketDecoder.Frame], fault: MalformedPacket?) {
        if buffer.isEmpty { begunAt = now }
        // In place: the pieces of a large packet are copied once each.
        buffer += input
        var frames: [PacketDecoder.Frame] = []
        var fault: MalformedPacket?
        var offset = 0
        buffer.withUnsafeBytes { content in
            do throws(MalformedPacket) {
                while case .frame(let frame) = try PacketDecoder.frame(
                    content.bytes, at: offset, maximumSize: mostPacketBytes)
                {
                    frames.append(frame)
                    offset = frame.packet.end
                }
            } catch {
                fault = error
            }
        }
        guard offset > 0 else { return ([], [], fault) }
        begunAt = now
        let bytes = buffer
        buffer = offset < bytes.count ? Array(bytes[offset...]) : []
        return (bytes, frames, fault)
    }
}
