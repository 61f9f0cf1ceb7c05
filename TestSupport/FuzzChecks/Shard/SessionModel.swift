import HermesTesting
import MQTTCodec
import Structures

/// A session as its client knows it: requested, received and still due.
///
/// If the client cannot know whether the broker has processed its last packets, the model assumes
/// the case that allows more.
final class SessionModel {
    /// A filter that the client has sent.
    struct Use {
        /// The step in which its removal was acknowledged; `nil` while it may match.
        var end: Int?
        /// The step in which its QoS was acknowledged; `nil` before.
        var confirmedAt: Int?
        var qos = QoS.atMostOnce
        /// SUBSCRIBEs and UNSUBSCRIBEs without an acknowledgement.
        var changesUnderWay = 0
    }

    /// An outgoing PUBLISH with its packet identifier.
    struct Sending {
        let serial: Int?
        let publish: PacketContent.Publish
        /// No packet of the client can have ended it.
        var isSure: Bool
        /// PUBREL has arrived.
        var isReleased = false
    }

    /// Messages of one publisher to one topic, which stay in order.
    struct Stream: Hashable {
        let origin: NumberedMessage.Origin
        let topic: [UInt8]
        let isStored: Bool
    }

    let clientID: [UInt8]
    let isPersistent: Bool
    /// The owner of the session; no other user may get it.
    let userName: [UInt8]?
    /// The peer connected to it.
    var holder: Handle?
    var awaySince: MonotonicTime?
    /// Another CONNECT may have ended it.
    var mayBeGone = false
    /// The client has lost track of this session, or acknowledged messages that it never received,
    /// so that messages may be missing by its own fault.
    var isSloppy = false
    /// A limit or expiry dropped messages.
    var hasDrops = false
    var uses: [[UInt8]: Use] = [:]
    /// The step by which all requested retained messages had arrived; `nil` while some may come.
    var retainedServedAt: Int?

    // MARK: To the client

    var sendings: [PacketIdentifier: Sending] = [:]
    /// QoS 2 identifiers that the client holds until PUBREL [MQTT-4.3.3-2].
    var held: Set<PacketIdentifier> = []
    /// Every identifier to which the client ever sent PUBREC.
    var received: Set<PacketIdentifier> = []
    /// Serial numbers of live messages that arrived as new packets.
    var arrived: Set<Int> = []
    /// Serial numbers of live QoS 2 messages that the client processed.
    var handedOn: Set<Int> = []
    /// Serial numbers of all messages that arrived.
    var seen: Set<Int> = []
    /// Serial numbers that the broker has acknowledged and this session must get.
    var owed: Set<Int> = []
    var lastSerial: [Stream: Int] = [:]

    // MARK: From the client

    /// QoS 2 identifiers with PUBREC and without PUBREL.
    var inboundHeld: Set<PacketIdentifier> = []
    /// QoS 2 identifiers that the broker may hold.
    var inboundPossible: Set<PacketIdentifier> = []

    /// The session that a CONNECT creates.
    init(_ connect: PacketContent.Connect) {
        clientID = connect.clientID
        isPersistent = !connect.cleanSession
        userName = connect.userName
    }

    /// True when a requested filter matches that was in place at or after `step`.
    func mayWant(_ topic: [UInt8], since step: Int) -> Bool {
        uses.contains { filter, use in
            (use.end ?? .max) > step && Self.matches(filter, topic)
        }
    }

    /// True when a shared subscription may bring the topic.
    func isSharing(_ topic: [UInt8]) -> Bool {
        uses.keys.contains { SharedFilter.isShared($0) && Self.matches($0, topic) }
    }

    /// The highest QoS of matching plain subscriptions in place since before `step`; `nil` without
    /// one.
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

    /// Also matches a shared filter as a plain one, as brokers without shared subscriptions do.
    private static func matches(_ filter: [UInt8], _ topic: [UInt8]) -> Bool {
        NaiveMatcher.matches(filter, topic)
            || NaiveMatcher.matches(SharedFilter.matched(filter), topic)
    }
}
