import Authorization

/// The answer to an ``AuthenticationRequest``.
///
/// A detail is for the log and the client's history: a clause such as "its token expired at
/// 2026-11-25T02:00:00Z", without anything secret; `nil` when there is nothing to tell.
public enum LoginAnswer: Sendable {
    case admitted(Login)
    /// The password is wrong.
    case wrongPassword
    /// The token is not accepted.
    case tokenRefused(detail: String)
    /// The company's service refuses the login; it counts as a wrong password.
    case denied(detail: String)
    /// The company's service gives no answer; the client may come again.
    case serviceUnavailable(detail: String)
    /// Not decided, because too much waits or something is missing for the moment; the client may
    /// come again soon.
    case busy(detail: String?)

    /// A password that is right, for the user that CONNECT names.
    public static var rightPassword: LoginAnswer { .admitted(Login()) }
}

/// What a client has proven to be, and to be allowed, by its CONNECT.
public struct Login: Sendable {
    /// The user that a source of logins names; `nil` for the one that a certificate proves, or else
    /// that CONNECT names.
    public var userName: [UInt8]?
    /// The topics that the login allows; `nil` leaves them to the access rules.
    public var allowance: TopicAllowance?
    /// UNIX time in milliseconds at which the connection ends; `nil` for none.
    public var endsAtMs: Int64?

    public init(
        userName: [UInt8]? = nil, allowance: TopicAllowance? = nil, endsAtMs: Int64? = nil
    ) {
        self.userName = userName
        self.allowance = allowance
        self.endsAtMs = endsAtMs
    }
}
