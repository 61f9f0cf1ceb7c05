/// A phone that a notification service can wake, registered under a client identifier.
public struct Device: Sendable, Equatable {
    /// The sender that wakes the device.
    public enum Kind: UInt8, Sendable, BitwiseCopyable, CaseIterable {
        /// Apple's push service.
        case apns = 1
        /// The operator's webhook (`wakes.webhook`), which knows what the token means.
        case webhook = 2
        /// Google's Firebase Cloud Messaging.
        case fcm = 3
    }

    /// The half of Apple's push service that gave the token; ``production`` for other kinds.
    public enum Environment: UInt8, Sendable, BitwiseCopyable, CaseIterable {
        case production = 1
        /// For apps that Xcode installed.
        case sandbox = 2
    }

    /// The most bytes of a token.
    public static let mostTokenBytes = 512
    /// The most devices of a client.
    public static let mostOfClient = 8
    /// The most bytes of a device's name.
    public static let mostNameBytes = 32

    /// True for what may tell a device from others of its client: letters, digits, dots, dashes and
    /// underscores, at most ``mostNameBytes`` of them. Most clients have one device, without a name.
    public static func isName(_ text: some Collection<UInt8>) -> Bool {
        text.count <= mostNameBytes && text.allSatisfy(isPlain)
    }

    /// The most bytes of the name of an app.
    public static let mostBundleBytes = 155

    /// True for what may be the identifier of an app: letters, digits, dots, dashes and underscores,
    /// at most ``mostBundleBytes`` of them. Only ``Kind/webhook`` needs none.
    public static func isBundle(_ text: some Collection<UInt8>, for kind: Kind) -> Bool {
        text.count <= mostBundleBytes && (kind == .webhook || !text.isEmpty)
            && text.allSatisfy(isPlain)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
        default: false
        }
    }

    /// True for what may be a token: bytes of Apple's, printable ASCII without blanks of others.
    public static func isToken(_ token: some Collection<UInt8>, for kind: Kind) -> Bool {
        (1...mostTokenBytes).contains(token.count)
            && (kind == .apns || token.allSatisfy { (0x21...0x7E).contains($0) })
    }

    /// Tells it from others of the same client; usually empty.
    public var name: String
    public var kind: Kind
    /// The token: raw bytes for ``Kind/apns``, which are written in hexadecimal; for others UTF-8. A secret of the user: listings and logs show its first bytes only.
    public var token: [UInt8]
    /// The bundle identifier of the app (`apns-topic`), or its package name.
    public var bundle: String
    public var environment: Environment
    /// The user name that proved itself when the device was registered; `nil` for any. The device is
    /// woken for a session of this user only.
    public var userName: String?
    /// The user's time zone, such as `Europe/Berlin`; empty for that of the configuration.
    public var timeZone = ""
    /// UNIX time in milliseconds.
    public var registeredAtMs: Int64

    public init(
        name: String = "", kind: Kind, token: [UInt8], bundle: String, environment: Environment,
        userName: String? = nil, timeZone: String = "", registeredAtMs: Int64
    ) {
        self.timeZone = timeZone
        self.name = name
        self.kind = kind
        self.token = token
        self.bundle = bundle
        self.environment = environment
        self.userName = userName
        self.registeredAtMs = registeredAtMs
    }
}
