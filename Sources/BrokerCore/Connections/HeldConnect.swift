import MQTTCodec
import Structures

/// A CONNECT that waits, with the user name that something else than a password in it proved.
///
/// Layout: the size of the user name in four bytes (`UInt32.max` for none), its proof in one byte,
/// the user name, the packet. The owner calls ``release(in:)`` once.
package struct HeldConnect: BitwiseCopyable {
    private let bytes: SharedBytes
    private static var headerBytes: Int { 5 }
    private static var noUser: UInt32 { .max }

    /// Copies both.
    package init(
        _ packet: UnsafeRawBufferPointer, provenUser: SessionUser?, pool: BytePool
    ) {
        let userCount = provenUser?.name.count ?? 0
        bytes = SharedBytes(count: Self.headerBytes + userCount + packet.count, pool: pool)
        bytes.bytes.storeBytes(
            of: provenUser == nil ? Self.noUser : UInt32(userCount), as: UInt32.self)
        bytes.bytes.storeBytes(
            of: (provenUser?.proof ?? .none).rawValue, toByteOffset: 4, as: UInt8.self)
        if let base = provenUser?.name.baseAddress {
            (bytes.bytes + Self.headerBytes).copyMemory(from: base, byteCount: userCount)
        }
        if let base = packet.baseAddress {
            (bytes.bytes + Self.headerBytes + userCount)
                .copyMemory(from: base, byteCount: packet.count)
        }
    }

    /// The user name that a certificate or token proved, or `nil`. Valid until the release.
    package var provenUser: SessionUser? {
        let count = bytes.bytes.load(as: UInt32.self)
        let proof = bytes.bytes.load(fromByteOffset: 4, as: UInt8.self)
        guard count != Self.noUser, let proof = SessionUser.Proof(rawValue: proof) else {
            return nil
        }
        return SessionUser(
            name: UnsafeRawBufferPointer(
                start: bytes.bytes + Self.headerBytes, count: Int(count)),
            proof: proof)
    }

    /// The whole packet. Valid until the release.
    package var packet: UnsafeRawBufferPointer {
        let offset = Self.headerBytes + (provenUser?.name.count ?? 0)
        return UnsafeRawBufferPointer(start: bytes.bytes + offset, count: bytes.count - offset)
    }

    /// The packet, decoded; its ranges refer to ``packet``.
    package var connect: DecodedConnect {
        let span = packet.bytes
        guard
            case .frame(let frame)? = try? PacketDecoder.frame(
                span, at: 0, maximumSize: packet.count),
            let connect = try? DecodedConnect(frame, span)
        else { preconditionFailure("a CONNECT that was decoded no longer decodes") }
        return connect
    }

    package func release(in pool: BytePool) { bytes.release(in: pool) }
}

/// A CONNECT of any version.
package struct DecodedConnect {
    package let connect: Connect
    /// `nil` for a version before 5.0.
    package let terms: ClientTerms?

    /// Decodes a frame that holds a CONNECT.
    package init(
        _ frame: PacketDecoder.Frame, _ bytes: RawSpan
    ) throws(ConnectFault) {
        guard PacketDecoder5.isSpoken(inConnect: frame.body, bytes) else {
            do throws(MalformedPacket) {
                guard case .connect(let connect) = try PacketDecoder.decode(frame, bytes) else {
                    preconditionFailure("a CONNECT decoded as something else")
                }
                self.connect = connect
                terms = nil
                return
            } catch {
                throw .malformed(error)
            }
        }
        do throws(PacketFault) {
            let connect = try Connect5.decode(frame.body, bytes)
            self.connect = Connect(connect)
            terms = ClientTerms(connect)
        } catch {
            throw .fault(error)
        }
    }
}

/// A CONNECT that breaks a rule of its version.
package enum ConnectFault: Error {
    case malformed(MalformedPacket)
    case fault(PacketFault)
}
