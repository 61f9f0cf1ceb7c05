import MQTTCodec
import MQTTCore
import Structures

/// The work that one turn may do for clients' packets, so that no client holds up the others.
///
/// Work counts in units of about 16 ns, the time to put a small message into one receiver's output.
/// Each connection gets a share of what is left; a connection that has more to do waits for the next
/// turn. Once the turn's work is spent, packets that may cost much wait too, and the others (PINGREQ,
/// acknowledgements, DISCONNECT) are still handled. SUBSCRIBE and UNSUBSCRIBE stop behind any filter.
/// A PUBLISH waits while very many filters are searched (``mostMatchSteps``). Any packet is finished
/// once it is delivered or acts otherwise, so the work of a turn may exceed its bound by one.
package struct WorkBudget: BitwiseCopyable {
    /// Units of one turn, about 1 ms.
    private static var perTurn: Int { 65_536 }
    /// Units of one turn while memory has grown by ``mostUnsentBytes`` and output of earlier turns
    /// is unsent.
    private static var whileBehind: Int { 8_192 }
    /// Growth of memory, since sends are behind, from which on they catch up first.
    private static var mostUnsentBytes: Int { 8 * 1_024 * 1_024 }
    /// Units for the packets of one connection that cost little, once the turn's work is spent.
    private static var leastShare: Int { 256 }

    /// Most units of a turn for groups of the admin plane.
    private static var groupShare: Int { 4_096 }

    /// Units of every packet.
    package static var packet: Int { 4 }
    /// Units of a message of the admin plane, without its receivers.
    package static func publication(bytes: Int) -> Int { 16 + bytes >> 8 }
    /// Units of a node or subscription that a match visits, or of a member that is asked.
    package static var matchStep: Int { 4 }
    /// Steps of a match, besides the visits of its receivers, that are made at once.
    package static var mostMatchSteps: Int { 1_024 }
    /// Steps of a slice of a match when the connection's share is nearly spent.
    private static var leastMatchSteps: Int { 256 }
    /// Units of a message for one receiver: at QoS 1 and 2 it gets a place in a queue.
    package static func delivery(bytes: Int, qos: QoS) -> Int {
        (qos == .atMostOnce ? 1 : 10) + bytes >> 8
    }

    /// Units of a will for one receiver, beside those of any message: wills of many connections that end
    /// together have each a message of its own, and few receivers' outputs are in the cache.
    package static var will: Int { 8 }

    /// Units of reading a client's report, whose counters are added to the sums however few it names.
    package static func report(bytes: Int) -> Int { 320 + bytes >> 2 }
    /// Units of keeping or removing a retained message: each level is a node of the tree.
    package static func retained(_ topic: UnsafeRawBufferPointer) -> Int {
        16 + 12 * TopicLevels.count(topic)
    }

    /// Units of reading and storing the registration of a device.
    package static var registration: Int { 128 }
    /// Units of a message that asks for a wake, and of each step of that wake.
    package static var wake: Int { 16 }

    /// Units of a line of a trace, with its text.
    package static var traceLine: Int { 128 }
    /// Units of looking whether a trace follows a topic or takes a packet.
    package static var traceLook: Int { 8 }

    /// Units of an access rule, or a filter of a login, that a topic is compared with.
    package static var ruleStep: Int { 1 }
    /// Units of an access rule that a subscription's filter is compared with.
    package static var filterRuleStep: Int { 3 }
    /// Steps of access rules for one message's receivers that are made at once.
    package static var mostRuleSteps: Int { 4_096 }
    /// Units of a filter that is subscribed or unsubscribed: each level is a node of the tree.
    package static func filter(_ filter: UnsafeRawBufferPointer, isGranted: Bool) -> Int {
        isGranted ? 16 + 12 * TopicLevels.count(filter) + filter.count >> 4 : 4
    }

    private var left = Self.perTurn
    /// Bytes in use when a turn first left output unsent; `nil` while all is sent.
    private var bytesBefore: Int?
    /// Units that connections which wait since earlier turns get in this one.
    private var reserved = 0
    /// The connection's share has ended when so many units are left.
    private var shareEnd = 0

    /// Units that the turn has left; negative when it has spent more.
    package var unitsLeft: Int { left }
    /// True when the turn's work is spent.
    package var isSpent: Bool { left <= 0 }

    /// Begins a turn in which nothing is left of earlier turns.
    @inline(__always)
    package mutating func beginTurn() {
        left = Self.perTurn
        reserved = 0
        bytesBefore = nil
    }

    /// Begins a turn with work of earlier turns. What waits since earlier turns gets half of its work,
    /// ``releaseReserve()``; those that send now get the other half. `pool` holds the outputs.
    package mutating func beginTurn(hasUnsent: Bool, hasWaiting: Bool, pool: BytePool) {
        let all = isBehind(hasUnsent, pool) ? Self.whileBehind : Self.perTurn
        reserved = hasWaiting ? all / 2 : 0
        left = all - reserved
    }

    /// True when receivers' outputs grow faster than the sockets take them.
    private mutating func isBehind(_ hasUnsent: Bool, _ pool: BytePool) -> Bool {
        guard hasUnsent else {
            bytesBefore = nil
            return false
        }
        guard let bytesBefore else {
            self.bytesBefore = pool.bytesInUse
            return false
        }
        return pool.bytesInUse - bytesBefore > Self.mostUnsentBytes
    }

    /// Adds the half of the turn's work that was kept for connections which wait since earlier turns.
    package mutating func releaseReserve() {
        left = max(left, 0) + reserved
        reserved = 0
    }

    /// Begins the share of one connection: half of what is left.
    @inline(__always)
    package mutating func beginShare() {
        shareEnd = left > 0 ? left / 2 : left - Self.leastShare
    }

    /// Begins the share of the admin plane's groups: half of what is left, at most ``groupShare``.
    package mutating func beginGroups() {
        shareEnd = left - max(Self.leastShare, min(left / 2, Self.groupShare))
    }

    /// Steps for a slice of a match: what is left of the connection's share.
    package var matchSteps: Int { max(Self.leastMatchSteps, (left - shareEnd) / Self.matchStep) }

    /// Ends the share of the connection or of the groups.
    package mutating func endShare() { shareEnd = left }

    /// True when the share of the admin plane's groups is spent.
    package var isShareSpent: Bool { left <= shareEnd }

    /// True when the connection's next packet, of this type, is handled now.
    @inline(__always)
    package func admits(_ type: PacketType) -> Bool {
        left > shareEnd && (left > 0 || !Self.mayCostMuch(type))
    }

    @inline(__always)
    package mutating func spend(_ units: Int) { left -= units }

    /// True for packets whose work grows with the number of receivers or filters.
    @inline(__always)
    private static func mayCostMuch(_ type: PacketType) -> Bool {
        type == .publish || type == .subscribe || type == .unsubscribe
    }
}
