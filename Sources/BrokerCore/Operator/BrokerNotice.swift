import BrokerAPI
import MQTTCodec
import Structures

/// What the shard did that an operator may want to read; the loop logs it, once.
package enum BrokerNotice: Sendable {
    case opened(Handle, clientIdentifier: [UInt8], cleanSession: Bool, sessionPresent: Bool)
    /// `opening` is what the peer speaks instead of MQTT, if that is known.
    case closed(
        Handle, clientIdentifier: [UInt8]?, CloseReason, opening: ForeignProtocol?)
    /// `userName` is what the CONNECT claimed.
    case refused(Handle, clientIdentifier: [UInt8], userName: [UInt8]?, CloseReason)
    /// The first message that a session lost for this reason since its client connected.
    case dropping(clientIdentifier: [UInt8], DropReason)
    case sessionExpired(clientIdentifier: [UInt8])
    /// A filter was answered with 0x80, because of this limit.
    case subscriptionRefused(clientIdentifier: [UInt8], Limit)
    /// A message was delivered and not retained, because of this limit.
    case notRetained(topic: [UInt8], Limit)
    /// Two peers throw each other out again and again: the newcomer waits.
    case takeOverDelayed(TakeOverReport)
    /// The access rules refused something.
    case access(AccessReport)
    /// The store could not read the client's queue, and its connection ends; why.
    case unreadable(clientIdentifier: [UInt8], String)
    /// The same of a session that is over, whose messages others were to get.
    case unreadableEnded(clientIdentifier: [UInt8], String)
    /// We stopped, or went on, reading from a client.
    case paused(Handle, clientIdentifier: [UInt8], Bool)
    /// We stopped reading from a client because the store takes nothing new.
    case awaitsStore(Handle, clientIdentifier: [UInt8]?)
    /// So much waits for the disk that those who want more stored have to wait.
    case storeBehind(bytes: Int)
}

/// A CONNECT whose user name and password must be checked off the shard's thread.
package struct AuthenticationRequest: Sendable {
    package let connection: Handle
    /// The key of the address that it comes from; 0 for none that has to share.
    package var origin: UInt32
    package let userName: [UInt8]
    package let password: [UInt8]
}
