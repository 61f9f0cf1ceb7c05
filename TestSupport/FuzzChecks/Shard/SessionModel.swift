import HermesTesting
import MQTTCodec
import Structures

/// A session as its client sees it: what it asked for, what it got, and what it is owed.
///
/// Where the client cannot know what the broker did with its last packets, the model assumes
/// whatever forbids less.
final class SessionModel {
    /// A filter that the client sent.
    struct Use {
        /// The step in which its removal was confirmed; `nil` while it may match.
        var end: Int?
        /// The step in which its QoS was confirmed; `nil` while that is open.
        var confirmedAt: Int?
        var qos = QoS.atMostOnce
        /// SUBSCRIBEs and UNSUBSCRIBEs without an answer.
        var changesUnderWay = 0
    }

    /// An outgoing PUBLISH with its packet identifier.
    struct Sending {
        let serial: Int?
        let publish: PacketContent.Publish
        /// Nothing that was sent can have ended it.
        var isSure: Bool
        /// PUBREL came.
        var isReleased = false
    }

    /// Messages of one publisher to one topic, which stay in order.
    struct Stream: Hashable {
        let origin: NumberedMessage.Origin
        let topic: [UInt8]
        let isStored: Bool
    }

    let clientIdentifier: [UInt8]
    let isPersistent: Bool
    /// Whose it is: nobody else may have it.
    let userName: [UInt8]?
    /// The peer that holds it.
    var holder: Handle?
    var awaySince: MonotonicTime?
    /// Another CONNECT may have ended it.
    var mayBeGone = false
    /// The client does not know what it did in this session, or it answered what it had not received:
    /// messages may be lost by its own fault.
    var isSloppy = false
    /// A limit or an expiry took messages from it.
    var hasDrops = false
    var uses: [[UInt8]: Use] = [:]
    /// The step by which it had all retained messages that it asked for; `nil` while some may come.
    var retainedServedAt: Int?

    // MARK: To the client

    var sendings: [PacketIdentifier: Sending] = [:]
    /// QoS 2 identifiers that the client holds until PUBREL [MQTT-4.3.3-2].
    var held: Set<PacketIdentifier> = []
    /// Every identifier that the client ever answered with PUBREC.
    var received: Set<PacketIdentifier> = []
    /// Serial numbers of live messages that came as new packets.
    var arrived: Set<Int> = []
    /// Serial numbers of live QoS 2 messages that the client handed on.
    var handedOn: Set<Int> = []
    /// Serial numbers of all messages that came.
    var seen: Set<Int> = []
    /// Serial numbers that the broker took responsibility for.
    var owed: Set<Int> = []
    var lastSerial: [Stream: Int] = [:]

    // MARK: From the client

    /// QoS 2 identifiers whose PUBREC came and whose PUBREL was not sent.
    var inboundHeld: Set<PacketIdentifier> = []
    /// QoS 2 identifiers that the broker may hold.
    var inboundPossible: Set<PacketIdentifier> = []

    /// The session that a CONNECT makes.
    init(_ connect: PacketContent.Connect) {
        clientIdentifier = connect.clientIdentifier
        isPersistent = !connect.cleanSession
        userName = connect.userName
    }

    /// Whether a filter matches that the client asked for and that was in place at or after `step`.
    func mayWant(_ topic: [UInt8], since step: Int) -> Bool {
        uses.contains { filter, use in
            (use.end ?? .max) > step && Self.matches(filter, topic)
        }
    }

    /// Whether the topic may come by a shared subscription.
    func isSharing(_ topic: [UInt8]) -> Bool {
        uses.keys.contains { SharedFilter.isShared($0) && Self.matches($0, topic) }
    }

    /// The highest QoS of its own subscriptions that were in place before `step` and still are; `nil`
    /// when no such one matches.
    func sureQoS(_ topic: [UInt8], since step: Int) -> QoS? {
        var highest: QoS?
        for (filter, use) in uses where use.changesUnderWay == 0 && !SharedFilter.isShared(filter) {
            guard let confirmed = use.confirmedAt, confirmed < step,
                NaiveMatcher.matches(filter, topic)
            else { continue }
            highest = max(highest ?? use.qos, use.qos)
        }
        return highest
    }

    /// As a plain filter too: a broker without shared subscriptions takes it as that.
    private static func matches(_ filter: [UInt8], _ topic: [UInt8]) -> Bool {
        NaiveMatcher.matches(filter, topic)
            || NaiveMatcher.matches(SharedFilter.matched(filter), topic)
    }
}
