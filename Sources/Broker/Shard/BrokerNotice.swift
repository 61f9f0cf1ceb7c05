import MQTTCodec
import Structures

/// What the shard did that an operator may want to read; the loop logs it, once.
package enum BrokerNotice: Sendable {
    case opened(Handle, clientIdentifier: [UInt8], cleanSession: Bool, sessionPresent: Bool)
    case closed(Handle, clientIdentifier: [UInt8]?, CloseReason)
    case refused(Handle, clientIdentifier: [UInt8], CloseReason)
    /// The first message that a session lost for this reason since its client connected.
    case dropping(clientIdentifier: [UInt8], DropReason)
    case sessionExpired(clientIdentifier: [UInt8])
    /// We stopped, or went on, reading from a publisher.
    case paused(Handle, clientIdentifier: [UInt8], Bool)
}

/// Figures of the whole shard since its start.
package struct BrokerCounters: Sendable {
    package var connectionsOpened: UInt64 = 0
    package var connectionsRefused: UInt64 = 0
    package var publishesReceived: UInt64 = 0
    package var publishesSent: UInt64 = 0
    package var protocolViolations: UInt64 = 0
    package var dropped = DropCounts()
    package var sessionsExpired: UInt64 = 0

    package init() {}
}

/// A CONNECT whose user name and password must be checked off the shard's thread.
package struct AuthenticationRequest: Sendable {
    package let connection: Handle
    package let userName: [UInt8]
    package let password: [UInt8]
}
