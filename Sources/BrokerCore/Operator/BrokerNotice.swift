import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// An event in the shard for the operator's log; the loop logs it once.
public enum BrokerNotice: Sendable {
    /// `userName` is that of the session; `nil` without one.
    case opened(
        Handle, clientID: [UInt8], userName: [UInt8]?, cleanSession: Bool,
        sessionPresent: Bool)
    /// `opening` is the protocol of a peer that does not speak MQTT; `nil` if unknown.
    case closed(
        Handle, clientID: [UInt8]?, userName: [UInt8]?, CloseReason,
        opening: ForeignProtocol?)
    /// A CONNECT was rejected; `userName` is the one it claimed. `detail` is a clause that says more
    /// than the reason; `nil` without one.
    case refused(
        Handle, clientID: [UInt8], userName: [UInt8]?, CloseReason, detail: String?)
    /// A session lost so many messages for this reason since the last such notice; one of them, or
    /// `nil` when memory has none.
    case dropping(clientID: [UInt8], DropReason, ReportedMessage?, count: UInt64)
    /// So many messages of further clients were lost in the last second.
    case droppingOfOthers(count: UInt64)
    /// The will of a client was published.
    case willPublished(clientID: [UInt8], ReportedMessage)
    /// A persistent session ended, and with it so many messages that nobody gets. Without an end they
    /// are those of a queue that was read after the session's end was told.
    case sessionEnded(clientID: [UInt8], SessionEnd?, lost: UInt64)
    /// A filter got 0x80 because of this limit.
    case subscriptionRefused(clientID: [UInt8], Limit)
    /// A message was delivered but not retained, because of this limit.
    case notRetained(ReportedMessage, Limit)
    /// A scheduled message's time was over before it was published.
    case scheduledExpired(messageID: [UInt8], ReportedMessage)
    /// Two peers keep taking over one client identifier: the newcomer waits.
    case takeOverDelayed(TakeOverReport)
    /// The access rules denied something.
    case access(AccessReport)
    /// The store could not read the client's queue, for this reason; its connection ends.
    case unreadable(clientID: [UInt8], String)
    /// Damage has left a stored message of a client without a topic, so it is not sent.
    case damagedMessage(clientID: [UInt8], position: UInt64)
    /// The store could not read an ended session's queue, whose messages other group members get.
    case unreadableEnded(clientID: [UInt8], String)
    /// The broker stopped reading from a client (true), or went on (false).
    case paused(Handle, clientID: [UInt8], Bool)
    /// The broker stopped reading from a client because the store accepts nothing new.
    case awaitsStore(Handle, clientID: [UInt8]?)
    /// A client's registration of its device was not taken.
    case deviceRefused(clientID: [UInt8], DeviceRefusal)
    /// The push service says that the device is gone, and the broker has forgotten it.
    case deviceGone(ReportedDevice, reason: String)
    /// The push service does not know the device, which is set aside until it registers again.
    case deviceSetAside(ReportedDevice, reason: String)
    /// The backlog for the disk is full: clients that need the store have to wait.
    case storeBehind(bytes: Int)
}

/// A device that a log line is about.
public struct ReportedDevice: Sendable, Equatable {
    public var clientID: [UInt8]
    /// Tells it from others of the client; usually empty.
    public var name: [UInt8]
    /// The app; empty for none.
    public var bundle: [UInt8]

    public init(clientID: [UInt8], name: [UInt8], bundle: [UInt8]) {
        self.clientID = clientID
        self.name = name
        self.bundle = bundle
    }
}

/// The reason why a device was not registered.
public enum DeviceRefusal: Sendable, Equatable {
    /// The payload, of so many bytes, is no registration.
    case malformed(bytes: Int)
    /// `limits.device_bytes` are full, or its user has its share of them.
    case noRoom
    /// The client's device is that of another user.
    case ofAnotherUser
    /// It was registered, but without this time zone, which is not known.
    case unknownZone([UInt8])
}

/// A message that a log line is about.
public struct ReportedMessage: Sendable, Equatable {
    public var topic: [UInt8]
    /// The publisher's identifier of it; empty for one that came over MQTT.
    public var messageID: [UInt8]

    package init(_ message: Message) {
        topic = [UInt8](message.topic)
        messageID = [UInt8](message.messageID)
    }
}
