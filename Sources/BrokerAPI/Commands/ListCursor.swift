/// The end of a page of a sorted list, as the hexadecimal sort key of its last item.
public struct ListCursor: Sendable, Equatable {
    /// The sort key of the last item on the previous page.
    public let key: [UInt8]

    /// Fits any key, and short enough for a URL.
    public static let maximumKeyBytes = 512

    public init(key: [UInt8]) {
        self.key = key
    }

    /// `nil` for text that is no cursor.
    public init?(text: String) {
        let digits = text.utf8
        guard digits.count.isMultiple(of: 2), digits.count <= 2 * Self.maximumKeyBytes else {
            return nil
        }
        var key: [UInt8] = []
        key.reserveCapacity(digits.count / 2)
        var high: UInt8?
        for digit in digits {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default: return nil
            }
            if let first = high.take() { key.append(first << 4 | value) } else { high = value }
        }
        self.key = key
    }

    public var text: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: key.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] },
            as: UTF8.self)
    }
}
