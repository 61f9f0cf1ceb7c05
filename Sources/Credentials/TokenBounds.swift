import PlainText

/// The bounds within which a token's owner may publish: topics, and messages per time.
package struct TokenBounds: Sendable, Equatable {
    /// Most filters of a token.
    package static let maximumTopicCount = 16
    package static let none = TokenBounds(topics: [], rate: nil)

    /// Publishing to a topic name that none of them matches is refused; empty for no bound.
    package let topics: [TokenTopic]
    /// `nil` for no bound.
    package let rate: TokenRate?

    package init(topics: [TokenTopic], rate: TokenRate?) {
        self.topics = topics
        self.rate = rate
    }

    /// True when a topic name may be published to.
    package func allow(_ name: some Collection<UInt8>) -> Bool {
        topics.isEmpty || topics.contains { $0.matches(name) }
    }
}

/// A topic filter in the token file: 1 to 256 bytes of UTF-8 without blanks and control characters.
package struct TokenTopic: Hashable, Sendable, CustomStringConvertible {
    package static let maximumByteCount = 256
    package static let rules = """
        a topic filter of 1 to \(maximumByteCount) bytes without blanks and control characters, in \
        which `+` is a level and `#` the last one
        """

    package let text: String

    /// `nil` for a text that breaks the rules.
    package init?(_ text: some StringProtocol) {
        guard (1...Self.maximumByteCount).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F })
        else { return nil }
        let levels = Self.levels(text.utf8)
        for (index, level) in levels.enumerated() {
            if level.count > 1, level.contains(Self.one) || level.contains(Self.all) { return nil }
            if level.first == Self.all, index != levels.count - 1 { return nil }
        }
        self.text = String(text)
    }

    package var description: String { text }

    /// True when a subscription with this filter would get messages of that topic name (section 4.7).
    package func matches(_ name: some Collection<UInt8>) -> Bool {
        let filter = Self.levels(text.utf8)
        let levels = Self.levels(name)
        // A wildcard does not match a first level that begins with `$` [MQTT-4.7.2-1].
        if name.first == UInt8(ascii: "$"),
            text.utf8.first == Self.one || text.utf8.first == Self.all
        {
            return false
        }
        for (index, level) in filter.enumerated() {
            if level.first == Self.all { return true }
            guard index < levels.count,
                level.first == Self.one && level.count == 1 || level.elementsEqual(levels[index])
            else { return false }
        }
        return filter.count == levels.count
    }

    private static let one = UInt8(ascii: "+")
    private static let all = UInt8(ascii: "#")

    private static func levels<Bytes: Collection<UInt8>>(_ bytes: Bytes) -> [Bytes.SubSequence] {
        bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    }
}

/// Messages per second, minute or hour, written as `500/s`, `30/m` or `1000/h`.
package struct TokenRate: Hashable, Sendable, CustomStringConvertible {
    package static let maximumCount = 1_000_000
    package static let rules =
        "a whole number from 1 to \(maximumCount) with /s, /m or /h, such as 500/s"

    package let count: Int
    private let unit: Unit

    private enum Unit: String {
        case second = "s"
        case minute = "m"
        case hour = "h"
    }

    /// `nil` for a text that breaks the rules.
    package init?(_ text: some StringProtocol) {
        let parts = text.parts(separator: "/")
        guard parts.count == 2, let unit = Unit(rawValue: String(parts[1])),
            parts[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(parts[0]),
            (1...Self.maximumCount).contains(count)
        else { return nil }
        self.count = count
        self.unit = unit
    }

    /// The time in which ``count`` messages may be published.
    package var period: Duration {
        switch unit {
        case .second: .seconds(1)
        case .minute: .seconds(60)
        case .hour: .seconds(3_600)
        }
    }

    package var description: String { "\(count)/\(unit.rawValue)" }
}
