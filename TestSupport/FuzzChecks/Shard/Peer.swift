import HermesTesting
import MQTTCodec
import Structures

/// A client's end of one connection: its socket, what it asked for, and what it still has to answer.
final class Peer {
    enum Stage {
        case awaitingConnack
        case accepted
        case refused
    }

    /// A PUBLISH that the broker has not answered.
    struct Unanswered {
        let identifier: PacketIdentifier
        /// `nil` when its payload carries no serial number.
        let serial: Int?
        /// QoS 2: PUBREL was sent too, so that the identifier means a new message.
        var isReleased = false
    }

    struct UnansweredSubscribe {
        let identifier: PacketIdentifier
        let requests: [PacketContent.Request]
    }

    let handle: Handle
    let openedAt: MonotonicTime

    // MARK: The socket

    /// Sent, and not taken by the shard yet.
    var kept: [UInt8] = []
    /// The end of a packet whose beginning was sent.
    var fragment: [UInt8] = []
    /// Of the next packet only so many bytes are sent.
    var fragmentSize: Int?
    /// How many bytes it still reads; `nil` is all.
    var readLimit: Int?
    /// It closed its side.
    var isGone = false
    /// The broker ended the connection.
    var isClosed = false
    /// When the broker last read a packet of it, or chose not to read.
    var heardAt: MonotonicTime
    /// Bytes that do not make a whole packet yet.
    var arriving: [UInt8] = []
    var sending: [UInt8] = []

    // MARK: What it sent

    /// It broke the protocol: nothing that follows counts.
    var isViolating = false
    var hasDisconnected = false
    var connect: PacketContent.Connect?
    /// The serial number of its will.
    var will: Int?
    /// Sent before CONNACK came; they count for the session that it names.
    var early: [PacketContent] = []
    var pubacks: [Unanswered] = []
    var pubrecs: [Unanswered] = []
    var pubcomps: [PacketIdentifier] = []
    /// PUBRECs that PUBREL has to answer; those in ``resentReleases`` may have been answered already.
    var pubrels: [PacketIdentifier] = []
    var subscribes: [UnansweredSubscribe] = []
    var unsubscribes: [(identifier: PacketIdentifier, filters: [[UInt8]])] = []
    var pings = 0
    /// Identifiers that it acknowledged on this connection.
    var acknowledged: Set<PacketIdentifier> = []

    // MARK: What it received

    var stage = Stage.awaitingConnack
    var session: SessionModel?
    /// The broker announced the connection as open.
    var wasOpened = false
    /// CONNACK said that the session was present, and no new message has come since.
    var isRedelivering = false
    /// Identifiers whose exchange was resumed by PUBLISH, and by PUBREL.
    var resentPublishes: Set<PacketIdentifier> = []
    var resentReleases: Set<PacketIdentifier> = []
    /// Acknowledgements that it owes, oldest first.
    var answers: [PacketContent] = []

    init(_ handle: Handle, openedAt: MonotonicTime) {
        self.handle = handle
        self.openedAt = openedAt
        heardAt = openedAt
    }

    /// Adds bytes of one direction and returns the packets that are whole now, and what is wrong
    /// behind them.
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
