/// Matches topics against a rule's topic filter, in which the levels `%u` and `%c` have been
/// replaced by one control byte each. No filter in a file can contain these bytes.
///
/// Wildcards match as in MQTT (section 4.7), with one difference: in a `deny` rule, a wildcard at
/// the first level also matches topics that begin with `$` [MQTT-4.7.2-1]. In doubt a rule denies.
enum TopicPattern {
    static let userPlaceholder: UInt8 = 1
    static let clientPlaceholder: UInt8 = 2

    static let separator = UInt8(ascii: "/")
    static let singleLevel = UInt8(ascii: "+")
    static let multiLevel = UInt8(ascii: "#")
    static let dollar = UInt8(ascii: "$")

    /// True when a name may take the place of `%u` or `%c`. It must act as exactly one plain level:
    /// not empty, UTF-8, without `+`, `#`, `/` and control characters, and not beginning with `$`.
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

    /// The client's name for a placeholder; `nil` when there is none or it is not usable.
    static func name(
        for placeholder: UInt8, _ subject: AccessSubject
    ) -> UnsafeRawBufferPointer? {
        let name = placeholder == userPlaceholder ? subject.userName : subject.clientID
        guard let name, isUsable(name) else { return nil }
        return name
    }

    /// True when the rule is about this topic name.
    ///
    /// An `allow` rule whose placeholder has no usable name matches nothing. A `deny` rule then
    /// matches every topic that begins with its text up to the placeholder. `steps` grows by one, and
    /// by one for each 32 bytes that were compared.
    @inline(__always)
    static func matches(
        _ pattern: UnsafeRawBufferPointer, topic: UnsafeRawBufferPointer,
        _ names: inout PlaceholderNames, isAllow: Bool, steps: inout Int
    ) -> Bool {
        steps += 1
        guard let first = pattern.first else { return false }
        // Most rules are about other topics, as their first byte tells.
        if let other = topic.first, other != first, first > clientPlaceholder,
            first != singleLevel, first != multiLevel
        {
            return false
        }
        return matchesAll(pattern, topic, &names, isAllow, &steps)
    }

    private static func matchesAll(
        _ pattern: UnsafeRawBufferPointer, _ topic: UnsafeRawBufferPointer,
        _ names: inout PlaceholderNames, _ isAllow: Bool, _ steps: inout Int
    ) -> Bool {
        if isAllow, topic.first == dollar, pattern[0] == singleLevel || pattern[0] == multiLevel {
            return false
        }
        var place = 0
        var offset = 0
        defer { steps += offset >> 5 }
        while place < pattern.count {
            let byte = pattern[place]
            switch byte {
            case multiLevel:
                return true
            case singleLevel:
                while offset < topic.count, topic[offset] != separator { offset += 1 }
                place += 1
            case userPlaceholder, clientPlaceholder:
                guard let name = names.name(for: byte, &steps) else { return !isAllow }
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

    /// The usable names of one client for `%u` and `%c`, checked once for many rules.
    struct Names {
        private let userName: UnsafeRawBufferPointer?
        private let clientID: UnsafeRawBufferPointer?

        init(_ subject: AccessSubject) {
            userName = TopicPattern.name(for: userPlaceholder, subject)
            clientID = TopicPattern.name(for: clientPlaceholder, subject)
        }

        /// The name for a placeholder; `nil` when there is none or it is not usable.
        subscript(placeholder: UInt8) -> UnsafeRawBufferPointer? {
            placeholder == userPlaceholder ? userName : clientID
        }
    }

    /// The topics that the rule is about, for one client; `nil` for an `allow` rule whose
    /// placeholder has no usable name.
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
