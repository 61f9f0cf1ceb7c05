/// All addresses with the same first bits: `192.0.2.7`, `10.0.0.0/8` or `2001:db8::/32`.
public struct IPNetwork: Hashable, Sendable, BitwiseCopyable {
    /// The first address, with port 0: all bits after the first ``length`` are 0.
    public let first: IPAddress
    /// The prefix length: at most 32 for IPv4 and 128 for IPv6; 0 for an unknown family.
    public let length: UInt8

    /// The network of the first `length` bits of an address, at most the family's size.
    public init(_ address: IPAddress, length: UInt8) {
        switch address.family {
        case .unknown: self.length = 0
        case .ipv4: self.length = min(length, 32)
        case .ipv6: self.length = min(length, 128)
        }
        let bits = Int(self.length)
        switch address.family {
        case .unknown: first = .unknown
        case .ipv4:
            first = IPAddress(
                high: 0, low: address.low & ~(UInt64(UInt32.max) >> bits), port: 0, .ipv4)
        case .ipv6:
            // A shift by 64 or more gives 0.
            first = IPAddress(
                high: address.high & ~(UInt64.max >> bits),
                low: address.low & ~(UInt64.max >> max(bits - 64, 0)), port: 0, .ipv6)
        }
    }

    /// Parses a numeric address, optionally with `/` and a prefix length. `nil` for other text, or
    /// if a bit after the prefix is set.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = parts.first, let address = IPAddress(host: String(host), port: 0)
        else { return nil }
        let whole: UInt8 = address.family == .ipv4 ? 32 : 128
        var length = whole
        if parts.count == 2 {
            guard (1...3).contains(parts[1].utf8.count),
                parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let bits = UInt8(parts[1]), bits <= whole
            else { return nil }
            length = bits
        }
        self.init(address, length: length)
        guard first == address else { return nil }
    }

    /// The IPv4 network that such IPv6 addresses as ::ffff:192.0.2.0/120 make; any other network
    /// unchanged.
    public var unmapped: IPNetwork {
        let address = first.unmapped
        guard length >= 96, address.family != first.family else { return self }
        return IPNetwork(address, length: length - 96)
    }

    /// True when the address is in the network, at any port. An IPv4 address and its form
    /// ::ffff:a.b.c.d are the same address, as the two forms of a network are the same network:
    /// neither is in ::/0, which holds the addresses of IPv6.
    public func contains(_ address: IPAddress) -> Bool { unmapped.holds(address.unmapped) }

    /// True for networks of 127.0.0.0/8, and for those of ::1 whose connections are counted together.
    public var isLoopback: Bool {
        first.isLoopback || self == IPAddress(ipv6High: 0, low: 1, port: 0).prefix
    }

    private func holds(_ address: IPAddress) -> Bool {
        address.family == first.family && first.family != .unknown
            && IPNetwork(address, length: length) == self
    }

    /// `192.0.2.7` for one address, `2001:db8::/64` for more; "unknown" for an unknown family.
    public var text: String {
        switch first.family {
        case .unknown: "unknown"
        case .ipv4: length == 32 ? first.hostText : "\(first.hostText)/\(length)"
        case .ipv6: length == 128 ? first.hostText : "\(first.hostText)/\(length)"
        }
    }
}
