/// The end of a page of a sorted list, as the hexadecimal sort key of its last item.
public struct ListCursor: Sendable, Equatable {
    /// The sort key of the last item on the previous page.
    public let key: [UInt8]
    /// False for a key that sorts otherwise in the next run of the broker: its text names the run.
    public let isLasting: Bool

    /// Fits any key, and short enough for a URL.
    public static let maximumKeyBytes = 512
    /// Two digits a byte of the key, a dash, and the name of a run.
    public static let maximumTextBytes = 2 * maximumKeyBytes + 1 + 8

    public init(key: [UInt8], isLasting: Bool = true) {
        self.key = key
        self.isLasting = isLasting
    }

    /// `nil` for text that is no cursor, and for a cursor of another run of the broker.
    public init?(text: String) {
        var digits = text.utf8[...]
        if let dash = digits.firstIndex(of: UInt8(ascii: "-")) {
            guard digits[digits.index(after: dash)...].elementsEqual(BrokerRun.name.utf8) else {
                return nil
            }
            digits = digits[..<dash]
            isLasting = false
        } else {
            isLasting = true
        }
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
        let alphabet = Array("0123456789abcdef".utf8)
        let digits = String(
            decoding: key.flatMap { [alphabet[Int($0 >> 4)], alphabet[Int($0 & 0xF)]] },
            as: UTF8.self)
        return isLasting ? digits : "\(digits)-\(BrokerRun.name)"
    }
}
