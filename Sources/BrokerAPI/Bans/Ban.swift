import Addresses

/// One client identifier, user or network that an operator has shut out, for a time or until the
/// ban is lifted.
public struct Ban: Sendable, Equatable {
    /// The name of one ban, in the API and in logs: eight hexadecimal digits.
    public struct ID: Hashable, Sendable, BitwiseCopyable {
        public let number: UInt32

        public init(_ number: UInt32) { self.number = number }

        /// `nil` unless the text has the form of ``text``.
        public init?(_ text: some StringProtocol) {
            guard text.utf8.count == 8,
                text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }),
                let number = UInt32(text, radix: 16)
            else { return nil }
            self.number = number
        }

        public var text: String {
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 8 - digits.count) + digits
        }
    }

    /// What a ban goes by; each kind has a counter of refusals.
    public enum Kind: UInt8, CountLabel, BitwiseCopyable {
        case client, user, address

        public var name: String {
            switch self {
            case .client: "client"
            case .user: "user"
            case .address: "address"
            }
        }
    }

    /// The client, user or network that a ban shuts out. Names are the bytes of MQTT, which knows no
    /// Unicode normalisation.
    public enum Target: Hashable, Sendable {
        case client([UInt8])
        case user([UInt8])
        case address(IPNetwork)

        public var kind: Kind {
            switch self {
            case .client: .client
            case .user: .user
            case .address: .address
            }
        }

        /// A network as the broker sees its connections: an IPv4 network in its IPv6 form
        /// (::ffff:192.0.2.0/120) becomes the IPv4 network.
        public static func network(_ network: IPNetwork) -> Target { .address(network.unmapped) }

        /// The client identifier, user name or network as text.
        public var text: String {
            switch self {
            case .client(let name), .user(let name): String(decoding: name, as: UTF8.self)
            case .address(let network): network.text
            }
        }
    }

    public let id: ID
    public let target: Target
    /// UNIX time in seconds.
    public let created: Int64
    /// UNIX time in seconds from which on it does not count; `nil` until it is lifted.
    public let expires: Int64?
    /// Why, in the operator's words; may be empty.
    public let reason: String
    /// The token by which it was made; empty for a caller without one.
    public let author: String

    public init(
        id: ID, target: Target, created: Int64, expires: Int64?, reason: String, author: String
    ) {
        self.id = id
        self.target = target
        self.created = created
        self.expires = expires
        self.reason = reason
        self.author = author
    }

    /// True from the second of its expiry on.
    public func isExpired(atMs now: Int64) -> Bool { expires.map { now / 1_000 >= $0 } ?? false }
}
