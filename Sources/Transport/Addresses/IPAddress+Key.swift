import Addresses
import Structures

extension IPAddress {
    /// A key for counting connections of one ``prefix``; never 0. Two prefixes may share a key.
    public func key(_ hash: KeyedHash) -> UInt32 {
        let first = prefix.first
        let numbers = (first.high, first.low, UInt64(first.family.rawValue))
        let value = withUnsafeBytes(of: numbers) { hash($0) }
        return max(1, UInt32(truncatingIfNeeded: value))
    }
}
