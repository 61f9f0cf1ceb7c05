import Glibc

/// A numeric IPv4 or IPv6 address with a port. Its size is fixed, so that only its text allocates.
public struct IPAddress: Hashable, Sendable, BitwiseCopyable {
    public enum Family: UInt8, Sendable, BitwiseCopyable {
        /// Another address family, or a peer unknown to the kernel.
        case unknown
        case ipv4
        case ipv6

        /// 32 for IPv4, 128 for IPv6, 0 for an unknown family.
        public var bitCount: Int {
            switch self {
            case .unknown: 0
            case .ipv4: 32
            case .ipv6: 128
            }
        }
    }

    /// The address as a number of 128 bits; an IPv4 address is in the lowest 32.
    public let high: UInt64
    public let low: UInt64
    /// 0 for an address without a port.
    public let port: UInt16
    public let family: Family

    public static var unknown: IPAddress { IPAddress(high: 0, low: 0, port: 0, .unknown) }

    init(high: UInt64, low: UInt64, port: UInt16, _ family: Family) {
        self.high = high
        self.low = low
        self.port = port
        self.family = family
    }

    /// An IPv4 address as a number, `0x7F00_0001` for 127.0.0.1.
    public init(ipv4: UInt32, port: UInt16) {
        self.init(high: 0, low: UInt64(ipv4), port: port, .ipv4)
    }

    /// The two halves of an IPv6 address as numbers: 0 and 1 for ::1.
    public init(ipv6High: UInt64, low: UInt64, port: UInt16) {
        self.init(high: ipv6High, low: low, port: port, .ipv6)
    }

    /// `nil` unless the text is a numeric address without zone and brackets.
    public init?(host: String, port: UInt16 = 0) {
        // inet_pton would stop at a NUL and accept the text before it.
        guard !host.utf8.contains(0) else { return nil }
        var four = in_addr()
        if inet_pton(AF_INET, host, &four) == 1 {
            self.init(ipv4: UInt32(bigEndian: four.s_addr), port: port)
            return
        }
        var six: (UInt64, UInt64) = (0, 0)
        guard inet_pton(AF_INET6, host, &six) == 1 else { return nil }
        self.init(
            ipv6High: UInt64(bigEndian: six.0), low: UInt64(bigEndian: six.1), port: port)
    }

    /// The address of a listener: numeric, or `localhost`, which means 127.0.0.1. `nil` for other text.
    public init?(listener: String, port: UInt16 = 0) {
        self.init(host: listener == "localhost" ? "127.0.0.1" : listener, port: port)
        self = unmapped
    }

    // MARK: Text

    /// `127.0.0.1:1883` or `[::1]:1883`; "unknown" for another family.
    public var text: String {
        family == .unknown ? "unknown" : Self.text(host: hostText, port: port)
    }

    /// A host with its port; brackets around an IPv6 address.
    public static func text(host: String, port: UInt16) -> String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// The address without port, `127.0.0.1` or `::1`; "unknown" for another family.
    public var hostText: String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        switch family {
        case .unknown: return "unknown"
        case .ipv4:
            var address = UInt32(truncatingIfNeeded: low).bigEndian
            inet_ntop(AF_INET, &address, &buffer, socklen_t(buffer.count))
        case .ipv6:
            var address = (high.bigEndian, low.bigEndian)
            inet_ntop(AF_INET6, &address, &buffer, socklen_t(buffer.count))
        }
        return String(
            decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: Ranges

    /// The IPv4 address in an IPv6 address such as ::ffff:192.0.2.7 (RFC 4291, section 2.5.5.2);
    /// any other address unchanged.
    public var unmapped: IPAddress {
        guard family == .ipv6, high == 0, low >> 32 == 0xFFFF else { return self }
        return IPAddress(ipv4: UInt32(truncatingIfNeeded: low), port: port)
    }

    /// The network whose connections are counted together: an IPv4 address, or the /64 network of
    /// an IPv6 address, all of which one machine can use.
    public var prefix: IPNetwork {
        let address = unmapped
        return IPNetwork(address, length: address.family == .ipv6 ? 64 : 32)
    }

    /// True for 127.0.0.0/8 and ::1.
    public var isLoopback: Bool {
        let address = unmapped
        return switch address.family {
        case .unknown: false
        case .ipv4: address.low >> 24 == 127
        case .ipv6: address.high == 0 && address.low == 1
        }
    }

    /// True for the host of a URL that is this machine: `localhost`, or a loopback address with or
    /// without brackets.
    public static func isLoopback(host: some StringProtocol) -> Bool {
        let name = host.lowercased()
        if name == "localhost" || name == "localhost." { return true }
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        return IPAddress(host: isBracketed ? String(name.dropFirst().dropLast()) : name)?.isLoopback
            ?? false
    }

    /// True for `0.0.0.0` and `::`, the wildcards of their families.
    private var isAny: Bool { family != .unknown && high == 0 && low == 0 }

    /// True when two sockets cannot share a port: equal addresses, or the family's wildcard.
    public func overlaps(_ other: IPAddress) -> Bool {
        family == other.family
            && (high == other.high && low == other.low || isAny || other.isAny)
    }
}
