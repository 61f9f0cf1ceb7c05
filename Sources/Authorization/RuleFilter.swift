/// The topic filter of a rule: a filter of MQTT (section 4.7) in which whole levels may be `%u`, the
/// client's user name, or `%c`, its client identifier.
enum RuleFilter {
    /// What is wrong with a filter.
    struct Flaw: Error {
        /// Continues "the topic filter …", without a full stop.
        let complaint: String
        /// Advice in one or more whole sentences.
        let cure: String

        init(_ complaint: String, _ cure: String) {
            self.complaint = complaint
            self.cure = cure
        }
    }

    /// Refuses a malformed filter; `hasUser` is false for a rule about clients without a user name.
    static func check(_ bytes: [UInt8], hasUser: Bool) throws(Flaw) {
        guard !bytes.isEmpty, bytes.count <= 65_535 else {
            throw Flaw(
                bytes.isEmpty ? "is empty" : "has more than 65535 bytes",
                "Write # for all topics.")
        }
        let levels = bytes.split(
            separator: TopicPattern.separator, omittingEmptySubsequences: false)
        for (index, level) in levels.enumerated() where level.count > 1 {
            guard !level.contains(TopicPattern.singleLevel),
                !level.contains(TopicPattern.multiLevel)
            else {
                throw Flaw(
                    "has a wildcard beside other characters of its level",
                    "Let + and # stand alone between the slashes.")
            }
            let isPlaceholder = level.elementsEqual("%u".utf8) || level.elementsEqual("%c".utf8)
            let text = String(decoding: level, as: UTF8.self)
            guard isPlaceholder || !(text.contains("%u") || text.contains("%c")) else {
                throw Flaw(
                    "has %u or %c beside other characters of its level",
                    "Let %u and %c stand alone between the slashes.")
            }
            if level.elementsEqual("%u".utf8), !hasUser {
                throw Flaw(
                    "has %u, and an anonymous client has no user name",
                    "Write the topic without %u, or let the rule be about user *.")
            }
            if index == 0, level.elementsEqual("$share".utf8) {
                throw Flaw(
                    "is one of a shared subscription",
                    "Write the filter behind $share/group/: rights are the same for both.")
            }
        }
        guard !levels.dropLast().contains(where: { $0.elementsEqual("#".utf8) }) else {
            throw Flaw("has a # before its end", "Let # be the last level.")
        }
    }

    /// The topic filter with each placeholder as a single byte; see ``TopicPattern``.
    static func pattern(_ filter: [UInt8]) -> [UInt8] {
        let levels = filter.split(
            separator: TopicPattern.separator, omittingEmptySubsequences: false)
        return Array(
            levels.map { level in
                switch Array(level) {
                case Array("%u".utf8): [TopicPattern.userPlaceholder]
                case Array("%c".utf8): [TopicPattern.clientPlaceholder]
                default: Array(level)
                }
            }.joined(separator: [TopicPattern.separator]))
    }
}
