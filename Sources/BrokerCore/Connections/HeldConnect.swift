import MQTTCodec
import Structures

/// A CONNECT that waits, with the user name that the client's TLS certificate proved.
///
/// Layout: the size of the user name in four bytes (`UInt32.max` for none), the user name, the
/// packet. The owner calls ``release(in:)`` once.
struct HeldConnect: BitwiseCopyable {
    private let bytes: SharedBytes
    private static var headerBytes: Int { 4 }
    private static var noUser: UInt32 { .max }

    /// Copies both.
    init(
        _ packet: UnsafeRawBufferPointer, certificateUser: UnsafeRawBufferPointer?, pool: BytePool
    ) {
        let userCount = certificateUser?.count ?? 0
        bytes = SharedBytes(count: Self.headerBytes + userCount + packet.count, pool: pool)
        bytes.bytes.storeBytes(
            of: certificateUser == nil ? Self.noUser : UInt32(userCount), as: UInt32.self)
        if let base = certificateUser?.baseAddress {
            (bytes.bytes + Self.headerBytes).copyMemory(from: base, byteCount: userCount)
        }
        if let base = packet.baseAddress {
            (bytes.bytes + Self.headerBytes + userCount)
                .copyMemory(from: base, byteCount: packet.count)
        }
    }

    /// The user name proved by the client's TLS certificate, or `nil`. Valid until the release.
    var certificateUser: UnsafeRawBufferPointer? {
        let count = bytes.bytes.load(as: UInt32.self)
        guard count != Self.noUser else { return nil }
        return UnsafeRawBufferPointer(start: bytes.bytes + Self.headerBytes, count: Int(count))
    }

    /// The whole packet. Valid until the release.
    var packet: UnsafeRawBufferPointer {
        let offset = Self.headerBytes + (certificateUser?.count ?? 0)
        return UnsafeRawBufferPointer(start: bytes.bytes + offset, count: bytes.count - offset)
    }

    /// The packet, decoded; its ranges refer to ``packet``.
    var connect: Connect {
        let span = packet.bytes
        guard
            case .frame(let frame)? = try? PacketDecoder.frame(
                span, at: 0, maximumSize: packet.count),
            case .connect(let connect)? = try? PacketDecoder.decode(frame, span)
        else { preconditionFailure("a CONNECT that was decoded no longer decodes") }
        return connect
    }

    func release(in pool: BytePool) { bytes.release(in: pool) }
}
