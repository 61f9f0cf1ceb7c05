/// The topic filter of a rule in the form that is matched: whole levels `%u` and `%c` are one control
/// byte each, which no filter of a file can hold.
///
/// A wildcard matches as in MQTT (section 4.7), with one difference: in a `deny` rule, one at the first
/// level also reaches topics that begin with `$` [MQTT-4.7.2-1]; in doubt a rule denies.
enum TopicPattern {
    static let userPlaceholder: UInt8 = 1
    static let clientPlaceholder: UInt8 = 2

    static let separator = UInt8(ascii: "/")
    static let singleLevel = UInt8(ascii: "+")
    static let multiLevel = UInt8(ascii: "#")
    static let dollar = UInt8(ascii: "$")

    /// Whether a name may stand for `%u` or `%c`. One that could act as more than one plain level may
    /// not: empty, with `+`, `#` or `/`, with control characters, beginning with `$`, or no UTF-8.
    static func isUsable(_ name: UnsafeRawBufferPointer) -> Bool {
        guard let first = name.first, first != dollar else { return false }
        var isASCII = true
        for byte in name {
            switch byte {
            case 0..<0x20, 0x7F, separator, singleLevel, multiLevel: return false
            case 0x80...: isASCII = false
            default: continue
            }
        }
        guard !isASCII else { return true }
        guard let text = String(validating: name, as: UTF8.self) else { return false }
        // C1 control characters.
        return !text.unicodeScalars.contains { (0x80...0x9F).contains($0.value) }
    }

    /// The name that fills a placeholder; `nil` when there is none that may.
    static func name(
        for placeholder: UInt8, _ subject: AccessSubject
    ) -> UnsafeRawBufferPointer? {
        let name = placeholder == userPlaceholder ? subject.userName : subject.clientIdentifier
        guard let name, isUsable(name) else { return nil }
        return name
    }

    /// Whether a topic name is among those that the rule is about.
    ///
    /// A rule whose placeholder cannot be filled allows nothing; a `deny` rule then denies all that its
    /// text up to the placeholder leads to.
    static func matches(
        _ pattern: UnsafeRawBufferPointer, topic: UnsafeRawBufferPointer,
        _ subject: AccessSubject, isAllow: Bool
    ) -> Bool {
        guard let first = pattern.first else { return false }
        if isAllow, topic.first == dollar, first == singleLevel || first == multiLevel {
            return false
        }
        var place = 0
        var offset = 0
        while place < pattern.count {
            let byte = pattern[place]
            switch byte {
            case multiLevel:
                return true
            case singleLevel:
                while offset < topic.count, topic[offset] != separator { offset += 1 }
                place += 1
            case userPlaceholder, clientPlaceholder:
                guard let name = name(for: byte, subject) else { return !isAllow }
                let end = offset + name.count
                guard end <= topic.count, end == topic.count || topic[end] == separator,
                    topic[offset..<end].elementsEqual(name)
                else { return false }
                offset = end
                place += 1
            default:
                guard offset < topic.count else {
                    // `a/#` also matches `a` itself (section 4.7.1.2).
                    return byte == separator && place + 2 == pattern.count
                        && pattern[place + 1] == multiLevel
                }
                guard topic[offset] == byte else { return false }
                place += 1
                offset += 1
            }
        }
        return offset == topic.count
    }

    /// The names of one subject that may stand for `%u` and `%c`, looked at once for many rules.
    struct Names {
        private let userName: UnsafeRawBufferPointer?
        private let clientIdentifier: UnsafeRawBufferPointer?

        init(_ subject: AccessSubject) {
            userName = TopicPattern.name(for: userPlaceholder, subject)
            clientIdentifier = TopicPattern.name(for: clientPlaceholder, subject)
        }

        /// The name that fills a placeholder; `nil` when there is none that may.
        subscript(placeholder: UInt8) -> UnsafeRawBufferPointer? {
            placeholder == userPlaceholder ? userName : clientIdentifier
        }
    }

    /// The topics that the rule is about for one subject; `nil` for an `allow` rule whose placeholder
    /// cannot be filled.
    static func topics(
        _ pattern: UnsafeRawBufferPointer, _ names: Names, isAllow: Bool
    ) -> TopicSet? {
        if isAllow, names[userPlaceholder] == nil || names[clientPlaceholder] == nil {
            for byte in pattern where byte == userPlaceholder || byte == clientPlaceholder {
                guard names[byte] != nil else { return nil }
            }
        }
        return TopicSet(filter: pattern, names: names, reachesDollar: !isAllow)
    }
}
