import Testing

/// Text that a stranger chose is no key, is not compared and not sorted as a `String`, whose
/// equality normalises and takes the square of a run of combining marks. `ForeignText` and the
/// helpers beside it in PlainText do the same by bytes.
///
/// The test reads lines, not types. It finds tables by `String`, sorts whose order it cannot see to
/// be one of bytes or numbers, comparisons with a literal, comparisons of the fields that hold names
/// of clients, users, messages, topics and tags, and the calls that take text apart by characters.
/// It does not see: two variables that are compared (`left == right`), `switch` over a `String`,
/// `==` that the compiler makes for a struct with a `String` in it, a closure on another line than
/// its sort, and what libraries do. JSON members, claims and query items are therefore `ForeignText`
/// from the parser on, so that the compiler carries them.
@Suite("Foreign text is compared by bytes")
struct ForeignTextTests {
    /// Modules in which strangers' text is read: requests, tokens, answers of services, ban and
    /// token files that the API writes.
    private static let readers = [
        "Sources/PushServices", "Sources/AdminAPI", "Sources/BanFiles", "Sources/BrokerAPI",
        "Sources/Credentials", "Sources/Explanations", "Sources/HermesMessages",
        "Sources/LineFiles", "Sources/LoginServices", "Sources/Logins", "Sources/PlainText",
        "Sources/RequestText", "Sources/Wakes", "Sources/Webhook",
    ]

    /// Programs that show what a broker answers, and read their own user's words besides: only
    /// tables, sorts and named fields are looked at.
    private static let showers = [
        "Client/Sources/HermesKit", "Client/Sources/HermesClientCore",
        "Sources/OperatorCLI/Commands", "Sources/OperatorCLI/HTTP", "Sources/OperatorCLI/Output",
    ]

    /// A form that is looked for, outside of comments.
    private struct Form: Sendable {
        let name: String
        /// Words of which each such line has one.
        let words: [StaticString]
        let pattern: @Sendable (Substring) -> Bool
        /// True for a form that is also looked for in ``showers``.
        let isForShowers: Bool

        func finds(_ line: Substring) -> Bool { line.has(anyOf: words) && pattern(line) }
    }

    private static let forms = [
        // Counts by labels of this program go as `[String: UInt64]`.
        Form(
            name: "a table by String",
            words: ["tring"],
            pattern: {
                $0.contains(
                    #/\[(?:String|Substring)\s*:(?!\s*UInt64\])|(?:Set|Dictionary)<(?:String|Substring)\b/#
                )
            },
            isForShowers: true),
        Form(
            name: "a sort of texts",
            words: [".sorted", ".min()", ".max()"],
            pattern: {
                $0.contains(#/\.(?:sorted|min|max)\(\)|\.sorted(?:\(by:|\s*\{|\()/#)
                    && !$0.contains(#/ForeignText\(|lexicographicallyPrecedes/#)
            },
            isForShowers: true),
        Form(
            name: "a comparison of a name",
            words: ["clientID", "messageID", "userName", "topic", "filter", "tag"],
            pattern: {
                $0.contains(
                    #/\.(?:clientID|messageID|userName|topic|filter|tag)\b\??\s*(?:[!=]=|[<>]=?)\s(?!nil)/#
                )
            },
            isForShowers: true),
        Form(
            name: "a comparison with a literal",
            words: ["= \"", "\" =", "\" !"],
            pattern: {
                // An element of a text by its scalars or bytes, or one of ASCII, costs nothing.
                $0.replacing(#/(?:scalar|\$0) == ".{1,2}"/#, with: "")
                    .contains(#/[!=]= "|" [!=]=/#)
            },
            isForShowers: false),
        Form(
            name: "text taken apart by characters",
            words: ["hasPrefix", "hasSuffix", "separator: \"", "contains(\"", "firstIndex("],
            pattern: {
                $0.contains(
                    #/\.has(?:Prefix|Suffix)\(|\.split\(separator: "|\.contains\("|\.firstIndex\(of: "/#
                )
            },
            isForShowers: false),
    ]

    /// Lines of a file that hold such a form and no foreign text, by a part of the line.
    private static let allowed: [(path: String, part: String, why: String)] = [
        ("BrokerAPI/Answers/BrokerSnapshot", "daysLeft", "numbers"),
        ("BrokerAPI/Bans/BanTable", "map(\\.length)", "numbers"),
        ("AdminAPI/Server/ConnectionRoster", "counts.values.max()", "numbers"),
        ("OperatorCLI/Commands/LockoutsCommand", "untilMs", "numbers"),
        ("OperatorCLI/Commands/ScheduledListCommand", "deliverAtMs", "numbers"),
        ("OperatorCLI/Output/FieldList", "DisplayWidth", "numbers"),
        ("OperatorCLI/Output/Table", "DisplayWidth", "numbers"),
        ("HermesClientCore/Storage/StoredState", "rawValue", "numbers"),
        ("HermesClientCore/Inbound/ChannelTable", "lastChange", "numbers"),
        ("HermesClientCore/Outbound/SubscriptionTable", "$0.filter ==", "bytes"),
        ("HermesClientCore/Machine/ClientMachine", "nextKey =", "numbers"),
        ("HermesClientCore/Outbound/Outbox", "$0.topic ==", "bytes"),
        ("Credentials/PasswordFile", "$0.userName == userName", "the type UserName, bytes"),
        ("PushServices/HTTP2/HTTP2Client", "$0.tag == tag", "numbers"),
        ("AdminAPI/Routes/ConfigurationRoutes", "values.keys.min()", "of the type ForeignText"),
        ("HermesMessages/OrderStatusUpdate", "details.sorted", "keys of the type ForeignText"),
        (
            "OperatorCLI/Commands/ArrivalsCommand", "page.clients.sorted {",
            "compared below by bytes"
        ),
        ("AdminAPI/Metrics/MetricFamily+Webhook", "sorted", "labels of this program"),
        ("Explanations/Explanation", "detail.dropped", "labels of this program"),
        ("Explanations/Explanation", "taken_over", "a reason of this program"),
        ("Explanations/Spans", "unit ==", "a word of this program"),
        (
            "AdminAPI/Routes/RouteTable", "[String: String]",
            "keys are parts of the routes' own paths"
        ),
        ("AdminAPI/Server/AdminResponder", "parameters", "keys are parts of the routes' own paths"),
        ("AdminAPI/HTTP/TopicTemplate", "", "the operator's setting"),
        ("AdminAPI/Access/PublishBounds", "wholeAgain", "names of tokens, ASCII"),
        ("AdminAPI/Access/TokenChecks", "\"\\(error)\"", "an error of this program"),
        ("AdminAPI/AccessRules/AccessRulesFile", "\"\\(error)\"", "an error of this program"),
        ("AdminAPI/AccessRules/AccessRulesFile", "expected.contains(", "of the type ForeignText"),
        ("AdminAPI/Server/AdminServer", "configuration.address", "the operator's setting"),
        ("AdminAPI/TLS/HandshakeLog", "word.hasSuffix", "words of BoringSSL"),
        ("Logins/Tokens/KeySet+JSON", "$0.name ==", "of the type ForeignText"),
        ("Logins/Tokens/KeySet+JSON", "string(\"crv\")", "of the type ForeignText"),
        ("Logins/Tokens/KeyFile", "PRIVATE KEY", "the operator's file"),
        ("Logins/Tokens/VerificationKey", "prime256v1", "a word of OpenSSL"),
        ("PushServices/SigningKey", "prime256v1", "a word of OpenSSL"),
        ("OperatorCLI/Commands/ConfigShowCommand", "String: String?", "the user's arguments"),
        ("OperatorCLI/HTTP/AdminClient+Configuration", "String: String?", "the user's arguments"),
        ("OperatorCLI/Commands/", "environment: [String: String]", "the user's environment"),
        ("OperatorCLI/Commands/ConnectionOptions", "[String: String]", "the user's environment"),
        ("OperatorCLI/Commands/ConnectionOptions", "ownVariables", "names of this program"),
        ("HermesKit/Server", "headers: [String: String]", "the app's own"),
        ("HermesKit/ReceivedMessage", "details: [String: String]", "the app's interface"),
    ]

    private static func found(_ form: Form, _ file: SourceFile) -> [(line: Int, text: Substring)] {
        file.lines.enumerated().compactMap { index, line in
            guard form.finds(line.code) else { return nil }
            let code = line.code
            let isAllowed = allowed.contains { path, part, _ in
                file.path.contains(path) && (part.isEmpty || code.contains(part))
            }
            return isAllowed ? nil : (index + 1, code)
        }
    }

    @Test("no String is a key, is sorted or is compared where strangers' text is read")
    func forms() throws {
        for (folders, isShower) in [(Self.readers, false), (Self.showers, true)] {
            for folder in folders {
                let files = try Repository.files(in: folder, suffix: ".swift")
                #expect(!files.isEmpty, "\(folder) has no sources")
                for file in files {
                    for form in Self.forms where form.isForShowers || !isShower {
                        for (line, text) in Self.found(form, file) {
                            Issue.record("\(file.path):\(line): \(form.name): \(text)")
                        }
                    }
                }
            }
        }
    }

    @Test("each exception is of use")
    func exceptions() throws {
        let files = try (Self.readers + Self.showers).flatMap {
            try Repository.files(in: $0, suffix: ".swift")
        }
        for (path, part, _) in Self.allowed {
            let isUsed = files.contains { file in
                file.path.contains(path)
                    && file.lines.contains { line in
                        (part.isEmpty || line.contains(part))
                            && Self.forms.contains { $0.finds(line) }
                    }
            }
            #expect(isUsed, "\(path) has no line with \(part) any more")
        }
    }

    @Test(
        "the scan finds such lines",
        arguments: [
            "var members: [String: JSONValue] = [:]", "var seen: Set<String> = []",
            "let all = Dictionary<String, Int>()", "names.sorted()",
            ".sorted { $0.filter < $1.filter }", "clients.sorted(by: <)", "values.keys.min()",
            "if receiver.clientID == clientID {", "guard page.topic != topic else {",
            "if origin == \"null\" {", "\"none\" != word", "if word.hasPrefix(\"topic:\") {",
            "header.split(separator: \",\")", "topic.contains(\"+\")",
        ])
    func scan(line: String) {
        #expect(Self.forms.contains { $0.finds(line[...]) })
    }

    @Test(
        "the scan passes over what is compared by bytes or is no text",
        arguments: [
            "var members: [ForeignText: JSONValue] = [:]", "var events: [String: UInt64]",
            ".sorted { ForeignText($0.tag) < ForeignText($1.tag) }",
            "filters.sorted { $0.filter.lexicographicallyPrecedes($1.filter) }",
            "given.hasBytes(of: value)", "if page.topic == nil {", "header.parts(separator: \",\")",
            "text.unicodeScalars.contains { $0 == \",\" }", "bytes.sort()",
        ])
    func passes(line: String) {
        #expect(!Self.forms.contains { $0.finds(line[...]) })
    }
}
