import BrokerAPI
import BrokerCore
import Glibc
import Structures

/// What a list sorts an item by: its rank, the lowest first, and among equals the bytes of its text.
struct SortKey: Comparable {
    /// Longer text sorts by its beginning and its hash, so that a cursor fits in a URL.
    static let prefixBytes = 256

    /// 0 in a list that is sorted by text alone.
    var rank: UInt64
    var text: [UInt8]

    /// The zero byte that ends a beginning occurs in no text of MQTT [MQTT-1.5.3-2].
    init(_ text: UnsafeRawBufferPointer, rank: UInt64 = 0, _ hash: KeyedHash) {
        self.rank = rank
        guard text.count > Self.prefixBytes else {
            self.text = [UInt8](text)
            return
        }
        self.text = [UInt8](text[..<Self.prefixBytes])
        self.text.append(0)
        withUnsafeBytes(of: hash(text).bigEndian) { self.text.append(contentsOf: $0) }
    }

    /// The key of a cursor, which begins with the eight bytes of the rank, the most significant
    /// first, in a list that has ranks; `nil` for the first page.
    init?(_ cursor: String?, isRanked: Bool) {
        guard let key = cursor.flatMap({ ListCursor(text: $0) })?.key, !key.isEmpty else {
            return nil
        }
        let rank = isRanked ? key.prefix(8) : []
        self.rank = rank.reduce(0) { $0 << 8 | UInt64($1) }
        text = [UInt8](key.dropFirst(rank.count))
    }

    /// The hash of a long text has another key in the next run of the broker.
    func cursor(isRanked: Bool) -> String {
        let rank = isRanked ? withUnsafeBytes(of: rank.bigEndian) { [UInt8]($0) } : []
        return ListCursor(key: rank + text, isLasting: isWhole).text
    }

    /// False for a key of a text that is longer than ``prefixBytes``, of which it has the beginning.
    var isWhole: Bool { text.count <= Self.prefixBytes }

    func precedes(_ other: UnsafeRawBufferPointer, rank: UInt64) -> Bool {
        guard self.rank == rank else { return self.rank < rank }
        return text.withUnsafeBytes { Self.precedes($0, other) }
    }

    func follows(_ other: UnsafeRawBufferPointer, rank: UInt64) -> Bool {
        guard self.rank == rank else { return self.rank > rank }
        return text.withUnsafeBytes { Self.precedes(other, $0) }
    }

    static func < (left: SortKey, right: SortKey) -> Bool {
        right.text.withUnsafeBytes { left.precedes($0, rank: right.rank) }
    }

    private static func precedes(
        _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer
    ) -> Bool {
        let common = min(left.count, right.count)
        if common > 0, let first = left.baseAddress, let second = right.baseAddress {
            let order = memcmp(first, second, common)
            if order != 0 { return order < 0 }
        }
        return left.count < right.count
    }
}
