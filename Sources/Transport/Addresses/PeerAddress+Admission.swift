import Structures

extension PeerAddress {
    /// A key for counting connections of one ``prefix``; never 0. Two prefixes may share a key.
    public func key(_ hash: KeyedHash) -> UInt32 {
        let first = prefix.first
        let numbers = (first.high, first.low, UInt64(first.family.rawValue))
        let value = withUnsafeBytes(of: numbers) { hash($0) }
        return max(1, UInt32(truncatingIfNeeded: value))
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
}
