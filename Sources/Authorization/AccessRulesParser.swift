import PlainText

/// Parses an ACL file, whose lines have the form `allow|deny WHO publish|subscribe|both FILTER`.
///
/// WHO is `everyone`, `anonymous`, `user NAME` or `user *`, each optionally followed by `client
/// ID`, or `client ID` alone. Words are separated by blanks. A word that contains blanks is written
/// in double quotes, in which `\"` and `\\` stand for a quote and a backslash. Blank lines and
/// lines that begin with `#` are skipped.
struct AccessRulesParser {
    /// Far more than a broker needs. A question does not cost more in a longer file.
    static let maximumRules = 100_000

    private(set) var rules: [AccessRule] = []
    private(set) var problems: [AccessProblem] = []
    private(set) var omittedCount = 0

    /// A line is not a valid rule.
    private struct Malformed: Error {
        let complaint: String
        let cure: String

        init(_ complaint: String, _ cure: String) {
            self.complaint = complaint
            self.cure = cure
        }
    }

    private struct Word {
        var bytes: [UInt8]
        var isQuoted: Bool

        /// True when this word is the keyword; in quotes it is a name.
        func isKeyword(_ keyword: String) -> Bool {
            !isQuoted && bytes.elementsEqual(keyword.utf8)
        }

        /// The word for a message: escaped, and cut to 80 characters.
        var shown: String {
            let text = VisibleText.escaped(bytes)
            return text.count > 80 ? "\(text.prefix(80))…" : text
        }
    }

    mutating func parse(_ contents: [UInt8]) {
        let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
        guard !contents.starts(with: byteOrderMark) else {
            note(
                1, "the file begins with a byte order mark", "Save it as UTF-8 without one.")
            return
        }
        let lines = contents.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            do throws(Malformed) {
                guard let rule = try Self.rule(Array(line), line: index + 1) else { continue }
                guard rules.count < Self.maximumRules else {
                    note(
                        index + 1, "the file has more than \(Self.maximumRules) rules",
                        "Say with %u and %c what is alike for many users.")
                    return
                }
                rules.append(rule)
            } catch {
                note(index + 1, error.complaint, error.cure)
            }
        }
    }

    private mutating func note(_ line: Int, _ complaint: String, _ cure: String) {
        guard problems.count < AccessRulesError.capacity else {
            omittedCount += 1
            return
        }
        problems.append(AccessProblem(line: line, complaint, cure: cure))
    }

    /// Parses one line; `nil` for a blank line or a comment.
    private static func rule(_ line: [UInt8], line number: Int) throws(Malformed) -> AccessRule? {
        let blanks = line.prefix { isBlank($0) }.count
        if blanks == line.count || line[blanks] == UInt8(ascii: "#") { return nil }
        if line.last == UInt8(ascii: "\r") {
            throw Malformed(
                "the line ends with a carriage return", "Save the file with Unix line ends.")
        }
        try checkCharacters(line)
        var words = try words(of: line)[...]
        let isAllow = try takeEffect(&words)
        let (who, client) = try takeSubject(&words)
        let actions = try takeActions(&words)
        guard let filter = words.popFirst() else {
            throw Malformed(
                "there is no topic filter", "Write one at the end of the line, such as orders/#.")
        }
        if let rest = words.first {
            throw Malformed(
                "\"\(rest.shown)\" stands behind the topic filter",
                "Put a filter with blanks in double quotes, and a comment on a line of its own.")
        }
        try check(filter, who)
        return AccessRule(
            line: number, isAllow: isAllow, who: who, clientID: client, actions: actions,
            filter: filter.bytes)
    }

    // MARK: Words

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    private static func checkCharacters(_ line: [UInt8]) throws(Malformed) {
        guard let text = String(validating: line, as: UTF8.self) else {
            throw Malformed("the line is not valid UTF-8", "Save the file as UTF-8.")
        }
        for scalar in text.unicodeScalars where scalar != "\t" && VisibleText.isHidden(scalar) {
            throw Malformed(
                """
                the line contains the invisible character \
                U+\(String(scalar.value, radix: 16, uppercase: true))
                """, "Leave it out.")
        }
    }

    private static func words(of line: [UInt8]) throws(Malformed) -> [Word] {
        var words: [Word] = []
        var offset = 0
        while true {
            while offset < line.count, isBlank(line[offset]) { offset += 1 }
            guard offset < line.count else { return words }
            if line[offset] == UInt8(ascii: "\"") {
                words.append(try quotedWord(line, &offset))
            } else {
                let start = offset
                while offset < line.count, !isBlank(line[offset]) { offset += 1 }
                words.append(Word(bytes: Array(line[start..<offset]), isQuoted: false))
            }
        }
    }

    private static func quotedWord(_ line: [UInt8], _ offset: inout Int) throws(Malformed) -> Word {
        var bytes: [UInt8] = []
        offset += 1
        while offset < line.count {
            let byte = line[offset]
            offset += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard offset == line.count || isBlank(line[offset]) else {
                    throw Malformed(
                        "a closing quote is followed by other text",
                        "Put a blank behind it, and \\\" for a quote inside a word.")
                }
                return Word(bytes: bytes, isQuoted: true)
            case UInt8(ascii: "\\"):
                guard offset < line.count,
                    line[offset] == UInt8(ascii: "\"") || line[offset] == UInt8(ascii: "\\")
                else {
                    throw Malformed(
                        "a backslash in quotes stands before neither a quote nor a backslash",
                        "Write \\\\ for a backslash.")
                }
                bytes.append(line[offset])
                offset += 1
            default:
                bytes.append(byte)
            }
        }
        throw Malformed("a quote is not closed", "Close it on the same line.")
    }

    // MARK: Parts of a rule

    private static func takeEffect(_ words: inout ArraySlice<Word>) throws(Malformed) -> Bool {
        let word = words.popFirst()
        if word?.isKeyword("allow") == true { return true }
        if word?.isKeyword("deny") == true { return false }
        throw Malformed(
            "the line begins with \"\(word?.shown ?? "")\"",
            "Begin a rule with allow or deny, and a comment with #.")
    }

    private static func takeSubject(
        _ words: inout ArraySlice<Word>
    ) throws(Malformed) -> (AccessRule.Who, client: [UInt8]?) {
        let expected = "Write everyone, anonymous, user NAME, user *, or client ID."
        guard let word = words.popFirst() else {
            throw Malformed("the rule does not say whom it is about", expected)
        }
        var who = AccessRule.Who.everyone
        if word.isKeyword("anonymous") {
            who = .anonymous
        } else if word.isKeyword("user") {
            guard let name = words.popFirst(), !name.bytes.isEmpty else {
                throw Malformed("user stands without a name", "Write user NAME, or user * for all.")
            }
            who = name.isKeyword("*") ? .anyUser : .user(name.bytes)
        } else if word.isKeyword("client") {
            return (.everyone, client: try takeClient(&words))
        } else if !word.isKeyword("everyone") {
            throw Malformed("\"\(word.shown)\" does not say whom the rule is about", expected)
        }
        guard words.first?.isKeyword("client") == true else { return (who, client: nil) }
        words.removeFirst()
        return (who, client: try takeClient(&words))
    }

    private static func takeClient(
        _ words: inout ArraySlice<Word>
    ) throws(Malformed) -> [UInt8]? {
        guard let identifier = words.popFirst(), !identifier.bytes.isEmpty else {
            throw Malformed(
                "client stands without an identifier", "Write client ID, or leave it out for all.")
        }
        return identifier.isKeyword("*") ? nil : identifier.bytes
    }

    private static func takeActions(
        _ words: inout ArraySlice<Word>
    ) throws(Malformed) -> Set<AccessAction> {
        let word = words.popFirst()
        if word?.isKeyword("publish") == true { return [.publish] }
        if word?.isKeyword("subscribe") == true { return [.subscribe] }
        if word?.isKeyword("both") == true { return [.publish, .subscribe] }
        throw Malformed(
            word.map { "\"\($0.shown)\" is no action" } ?? "the rule does not say what it is about",
            "Write publish, subscribe or both before the topic filter.")
    }

    private static func check(_ filter: Word, _ who: AccessRule.Who) throws(Malformed) {
        do throws(RuleFilter.Flaw) {
            try RuleFilter.check(filter.bytes, hasUser: who != .anonymous)
        } catch {
            throw Malformed("the topic filter \"\(filter.shown)\" \(error.complaint)", error.cure)
        }
    }
}
