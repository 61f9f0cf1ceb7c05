/// A phone that a notification service can wake, registered under a client identifier.
public struct Device: Sendable, Equatable {
    /// The sender that wakes the device.
    public enum Kind: UInt8, Sendable, BitwiseCopyable, CaseIterable {
        /// Apple's push service.
        case apns = 1
        /// The operator's webhook (`push.webhook`), which knows what the token means.
        case webhook = 2
    }

    /// The half of Apple's push service that gave the token.
    public enum Environment: UInt8, Sendable, BitwiseCopyable, CaseIterable {
        case production = 1
        /// For apps that Xcode installed.
        case sandbox = 2
    }

    /// The most bytes of a token.
    public static let mostTokenBytes = 512
    /// The most bytes of the name of an app.
    public static let mostBundleBytes = 155

    public var kind: Kind
    /// The token: raw bytes for ``Kind/apns``, which are written in hexadecimal; for
    /// ``Kind/webhook`` UTF-8. A secret of the user: listings and logs show its first bytes only.
    public var token: [UInt8]
    /// The bundle identifier of the app (`apns-topic`).
    public var bundle: String
    public var environment: Environment
    /// The user name that proved itself when the device was registered; `nil` for any. The device is
    /// woken for a session of this user only.
    public var userName: String?
    /// UNIX time in milliseconds.
    public var registeredAtMs: Int64

    public init(
        kind: Kind, token: [UInt8], bundle: String, environment: Environment,
        userName: String? = nil, registeredAtMs: Int64
    ) {
        self.kind = kind
        self.token = token
        self.bundle = bundle
        self.environment = environment
        self.userName = userName
        self.registeredAtMs = registeredAtMs
    }
}
