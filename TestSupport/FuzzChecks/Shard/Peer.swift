import HermesTesting
import MQTTCodec
import Structures

/// The client's end of one connection: its socket, its requests, and the answers it owes.
final class Peer {
    enum Stage {
        case awaitingConnack
        case accepted
        case refused
    }

    /// A PUBLISH without an acknowledgement.
    struct Unanswered {
        let identifier: PacketIdentifier
        /// `nil` when the payload has no serial number.
        let serial: Int?
        /// QoS 2: PUBREL was sent, so the identifier is free for a new message.
        var isReleased = false
    }

    struct UnansweredSubscribe {
        let identifier: PacketIdentifier
        let requests: [PacketContent.Request]
    }

    let handle: Handle
    let openedAt: MonotonicTime

    // MARK: The socket

    /// Sent bytes that the shard has not consumed.
    var kept: [UInt8] = []
    /// The rest of a packet that was sent in part.
    var fragment: [UInt8] = []
    /// Bytes of the next packet to send; `nil` sends all.
    var fragmentSize: Int?
    /// Bytes that it still reads; `nil` reads all.
    var readLimit: Int?
    /// The client closed the connection.
    var isGone = false
    /// The broker closed the connection.
    var isClosed = false
    /// The time at which the broker last read a packet, or paused reading.
    var heardAt: MonotonicTime
    /// Bytes of an incomplete packet.
    var arriving: [UInt8] = []
    var sending: [UInt8] = []

    // MARK: What it sent

    /// It broke the protocol: later packets must have no effect.
    var isViolating = false
    /// It may have acknowledged by another packet than the one that was due.
    var acknowledgesFreely = false
    var hasDisconnected = false
    var connect: PacketContent.Connect?
    /// The serial number of its will.
    var will: Int?
    /// Packets sent before CONNACK; they belong to the session that CONNACK names.
    var early: [PacketContent] = []
    var pubacks: [Unanswered] = []
    var pubrecs: [Unanswered] = []
    var pubcomps: [PacketIdentifier] = []
    /// PUBRECs without PUBREL; those in ``resentReleases`` may have got one.
    var pubrels: [PacketIdentifier] = []
    var subscribes: [UnansweredSubscribe] = []
    var unsubscribes: [(identifier: PacketIdentifier, filters: [[UInt8]])] = []
    var pings = 0
    /// Identifiers that it has acknowledged on this connection.
    var acknowledged: Set<PacketIdentifier> = []

    // MARK: What it received

    var stage = Stage.awaitingConnack
    var session: SessionModel?
    /// The broker reported the connection as open.
    var wasOpened = false
    /// CONNACK said session present, and no new message has arrived since.
    var isRedelivering = false
    /// Identifiers whose exchange was resumed by PUBLISH, and by PUBREL.
    var resentPublishes: Set<PacketIdentifier> = []
    var resentReleases: Set<PacketIdentifier> = []
    /// Acknowledgements that it still has to send, oldest first.
    var answers: [PacketContent] = []

    init(_ handle: Handle, openedAt: MonotonicTime) {
        self.handle = handle
        self.openedAt = openedAt
        heardAt = openedAt
    }

    /// Adds received bytes; returns the complete packets, and an error after them.
    static func takePackets(
        _ pending: inout [UInt8], _ bytes: [UInt8], largest: (PacketContent) -> Int
    ) -> (packets: [PacketContent], error: MalformedPacket?) {
        pending += bytes
        var packets: [PacketContent] = []
        var offset = 0
        defer { pending.removeFirst(offset) }
        do throws(MalformedPacket) {
            while case .frame(let frame) = try PacketDecoder.frame(
                pending.span.bytes, at: offset, maximumSize: .max)
            {
                let packet = PacketContent(
                    try PacketDecoder.decode(frame, pending.span.bytes), in: pending)
                guard frame.packet.count <= largest(packet) else { throw .packetTooLarge }
                packets.append(packet)
                offset = frame.packet.end
            }
        } catch {
            return (packets, error)
        }
        return (packets, nil)
    }
}
