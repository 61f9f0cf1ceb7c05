import Addresses
import Structures

/// A CONNECT that is checked on other threads: its password, the token in its place, or whether the
/// user of a certificate may come.
public struct AuthenticationRequest: Sendable {
    public let connection: Handle
    /// The key of the peer's address; 0 when it is unknown.
    public var origin: UInt32
    /// The peer's address, which the loop fills in.
    public var address = IPAddress.unknown
    public let userName: [UInt8]
    public let clientID: [UInt8]
    public let password: [UInt8]
    /// The user name that the client's certificate proves; `nil` for none.
    public let certificateName: [UInt8]?
    /// Tells whether the client has gone meanwhile; `nil` when nobody wants to know. Any thread may ask.
    public var isGone: (@Sendable () -> Bool)?
    /// The sources of logins, in their order, that have been asked and do not know the login.
    public var sourcesPassed = 0

    /// False when there is nothing that could be guessed.
    public var mayBeGuess: Bool { certificateName == nil || !password.isEmpty }

    public init(
        connection: Handle, origin: UInt32, userName: [UInt8], clientID: [UInt8] = [],
        password: [UInt8], certificateName: [UInt8]? = nil
    ) {
        self.connection = connection
        self.origin = origin
        self.userName = userName
        self.clientID = clientID
        self.password = password
        self.certificateName = certificateName
    }
}
