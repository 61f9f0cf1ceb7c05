import Addresses
import Structures

/// A CONNECT whose password, or the token in its place, is checked on other threads.
public struct AuthenticationRequest: Sendable {
    public let connection: Handle
    /// The key of the peer's address; 0 when it is unknown.
    public var origin: UInt32
    /// The peer's address, which the loop fills in.
    public var address = IPAddress.unknown
    public let userName: [UInt8]
    public let clientIdentifier: [UInt8]
    public let password: [UInt8]
    /// Tells whether the client has gone meanwhile; `nil` when nobody wants to know. Any thread may ask.
    public var isGone: (@Sendable () -> Bool)?
    /// The sources of logins, in their order, that have been asked and do not know the login.
    public var sourcesPassed = 0

    public init(
        connection: Handle, origin: UInt32, userName: [UInt8], clientIdentifier: [UInt8] = [],
        password: [UInt8]
    ) {
        self.connection = connection
        self.origin = origin
        self.userName = userName
        self.clientIdentifier = clientIdentifier
        self.password = password
    }
}
