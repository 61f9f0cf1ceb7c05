import ArgumentParser
import Authorization
import PlainText

struct AclCheckCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Ask whether a client may publish or subscribe, and which rule says so.",
        discussion: """
            Reads the ACL file on this machine; a running broker is not asked. - as USER stands for \
            a client without a user name. With subscribe, TOPIC may be a filter. Exit code 0 says \
            that it is allowed, at least in part; 1 that it is denied.
            """)

    enum Action: String, ExpressibleByArgument, CaseIterable {
        case publish, subscribe
    }

    @Argument(help: ArgumentHelp("User name, or - for none.", valueName: "user"))
    var user: String

    @Argument(help: ArgumentHelp("Client identifier.", valueName: "client"))
    var client: String

    @Argument(help: ArgumentHelp("What it wants to do.", valueName: "publish|subscribe"))
    var action: Action

    @Argument(help: ArgumentHelp("Topic name; to subscribe, also a filter.", valueName: "topic"))
    var topic: String

    @OptionGroup var file: AclFileOptions
    @OptionGroup var output: OutputOptions

    /// The output of `--json`.
    private struct Answer: Encodable {
        struct Rule: Encodable {
            let file: String
            let line: Int
            let text: String
        }

        /// "all", "part" or "nothing": how many topics of the topic or filter are allowed.
        let allowed: String
        /// The rule that decided; left out when no rule fits, or when rules do not matter.
        let rule: Rule?
    }

    func validate() throws {
        let bytes = Array(topic.utf8)
        let shown = VisibleText.escaped(topic)
        guard (1...65_535).contains(bytes.count), !bytes.contains(0) else {
            throw ValidationError("A topic has 1 to 65535 bytes and no NUL.")
        }
        if action == .publish, topic.contains(where: { $0 == "+" || $0 == "#" }) {
            throw ValidationError(
                "\"\(shown)\" holds a wildcard. Publish takes one topic name without + and #.")
        }
        let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
        for (index, level) in levels.enumerated()
        where level.contains("#") || level.contains("+") {
            guard level == "+" || (level == "#" && index == levels.count - 1) else {
                throw ValidationError(
                    "\"\(shown)\" is no topic filter: + stands alone in its level, # alone in the last one."
                )
            }
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let path = try file.path(context.environment)
        let rules = try loadRules(path, context.console)
        if action == .publish, Array(topic.utf8).withUnsafeBytes(ClosedTopics.contains) {
            try context.console.print(
                output.json
                    ? JSONOutput.line(Answer(allowed: "nothing", rule: nil))
                    : "denied: topics below $SYS and $CONTROL are the broker's own, whatever the rules say\n"
            )
            throw CommandFailure(.refused, "")
        }
        let verdict = verdict(rules)
        let (allowed, line): (String, UInt32) =
            switch verdict {
            case .whole(let line): ("all", line)
            case .part(let line): ("part", line)
            case .nothing(let line): ("nothing", line)
            }
        let rule = rules.rules.first { $0.line == Int(line) }
        if output.json {
            let decided = rule.map {
                Answer.Rule(file: path, line: $0.line, text: $0.description)
            }
            try context.console.print(JSONOutput.line(Answer(allowed: allowed, rule: decided)))
        } else {
            try context.console.print(Self.text(verdict, rule, path))
        }
        if case .nothing = verdict { throw CommandFailure(.refused, "") }
    }

    private func verdict(_ rules: AccessRules) -> SubscriptionVerdict {
        let asked = Array(topic.utf8)
        let userName = user == "-" ? nil : Array(user.utf8)
        return Array(client.utf8).withUnsafeBytes { client in
            (userName ?? []).withUnsafeBytes { name in
                asked.withUnsafeBytes { topic in
                    let subject = AccessSubject(
                        userName: userName == nil ? nil : name, clientID: client)
                    switch action {
                    case .subscribe:
                        return rules.decideSubscription(
                            filter: Self.filterBehindGroup(topic), for: subject)
                    case .publish:
                        let verdict = rules.decide(.publish, topic: topic, for: subject)
                        return verdict.isAllowed
                            ? .whole(line: verdict.line) : .nothing(line: verdict.line)
                    }
                }
            }
        }
    }

    /// The rights to a shared subscription are those to its filter.
    private static func filterBehindGroup(
        _ topic: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        let prefix = Array("$share/".utf8)
        guard topic.starts(with: prefix),
            let slash = topic.dropFirst(prefix.count).firstIndex(of: UInt8(ascii: "/")),
            slash + 1 < topic.count
        else { return topic }
        return UnsafeRawBufferPointer(rebasing: topic[(slash + 1)...])
    }

    private static func text(
        _ verdict: SubscriptionVerdict, _ rule: AccessRule?, _ path: String
    ) -> String {
        let file = VisibleText.escaped(path)
        let decided =
            rule.map { "\(file):\($0.line): \(VisibleText.printable($0.description))" }
            ?? "\(file): no rule fits"
        return switch verdict {
        case .whole: "allowed by \(decided)\n"
        case .part:
            "allowed in part, by \(decided)\nMessages of topics that are not allowed are not delivered.\n"
        case .nothing: "denied by \(decided)\n"
        }
    }
}
