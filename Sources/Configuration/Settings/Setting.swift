/// One configuration key: its names, its format, and where its value is kept.
///
/// `Setting.all` is the only description of the configuration: the YAML file, the environment, the
/// flags, the suggestions for unknown keys and the documentation follow from it.
struct Setting: Sendable {
    /// The key with `[]` in place of a list index: `limits.max_packet`, `listeners[].port`.
    let pattern: String
    /// The command-line flag that sets it; `nil` for most keys.
    let flag: String?
    /// Completes "Give ….".
    let expectation: String
    /// One line for the documentation, in an operator's words.
    let summary: String
    /// Parses a text into a configuration; `nil` means no value. `index` names an existing listener
    /// and is ignored for keys outside lists.
    let assign:
        @Sendable (String?, _ index: Int, inout HermesConfiguration) throws(RefusedValue) -> Void
    /// The value as text that `assign` reads back; empty when it is not set.
    let show: @Sendable (HermesConfiguration, _ index: Int) -> String
    /// Copies the value from one configuration into another. Both must have the listener `index`.
    let copy: @Sendable (HermesConfiguration, _ index: Int, inout HermesConfiguration) -> Void

    /// The key as an operator writes it, such as `listeners[0].port`.
    func key(at index: Int) -> String {
        pattern.replacing("[]", with: "[\(index)]")
    }

    /// The environment variable that sets it, such as `HERMES_LISTENERS_0_PORT`.
    func variable(at index: Int) -> String {
        let words = pattern.replacing("[]", with: "_\(index)").replacing(".", with: "_")
        return EnvironmentLayer.prefix + words.uppercased()
    }

    /// True when the value may also be a YAML list of texts.
    var isList: Bool { Self.lists.contains(pattern) }

    private static let lists: Set<String> = [
        "listeners[].tls.certificate", "listeners[].tls.key", "listeners[].proxy_from",
        "listeners[].websocket.origins", "receipts.topics", "wakes.rules",
        "wakes.apns.apps", "wakes.fcm.apps", "auth.sources",
        "auth.jwt.audience",
    ]

    /// True for keys of a listener.
    var isOfListener: Bool { pattern.hasPrefix("listeners[]") }

    /// True when a reload applies a new value; other keys wait for the next start.
    var isReloadable: Bool {
        pattern == "logging.level" || Self.wakeKeysOfTheShard.contains(pattern)
            || Self.tokenKeys.contains(pattern) || Self.reloadableHTTPLoginKeys.contains(pattern)
            || pattern.hasPrefix("limits.") && !Self.limitsOfTheStart.contains(pattern)
    }

    /// Keys of the `wakes` section that are limits of the data plane.
    private static let wakeKeysOfTheShard: Set<String> = [
        "wakes.rules", "wakes.merge", "wakes.reconnect_window", "wakes.unanswered",
        "wakes.clear_badge", "wakes.quiet_hours", "wakes.cap",
    ]

    /// Keys of the `auth` section that say what a token must be.
    private static let tokenKeys = Set(
        [
            "issuer", "audience", "user_claim", "user_name", "publish_claim", "subscribe_claim",
            "leeway", "require_expiry", "expired",
        ].map { "auth.jwt.\($0)" })

    /// Limits that the HTTP API and packets in progress also rely on, so they need a restart.
    private static let limitsOfTheStart: Set<String> = [
        "limits.max_packet", "limits.max_connect_packet", "limits.max_topic_levels",
    ]
}

extension Setting {
    /// A key outside lists.
    static func single<Value>(
        _ pattern: String,
        _ path: WritableKeyPath<HermesConfiguration, Value> & Sendable,
        _ format: ValueFormat<Value>,
        flag: String? = nil,
        _ summary: String
    ) -> Setting {
        Setting(
            pattern: pattern, flag: flag, expectation: format.expectation, summary: summary,
            assign: {
                (text: String?, _, configuration: inout HermesConfiguration)
                    throws(RefusedValue) in
                configuration[keyPath: path] = try value(of: text, format)
            },
            show: { configuration, _ in format.write(configuration[keyPath: path]) },
            copy: { source, _, target in target[keyPath: path] = source[keyPath: path] }
        )
    }

    /// A key that every listener has.
    static func listener<Value>(
        _ name: String,
        _ path: WritableKeyPath<HermesConfiguration.Listener, Value> & Sendable,
        _ format: ValueFormat<Value>,
        flag: String? = nil,
        _ summary: String
    ) -> Setting {
        Setting(
            pattern: "listeners[].\(name)", flag: flag, expectation: format.expectation,
            summary: summary,
            assign: {
                (text: String?, index: Int, configuration: inout HermesConfiguration)
                    throws(RefusedValue) in
                configuration.listeners[index][keyPath: path] = try value(of: text, format)
            },
            show: { configuration, index in
                format.write(configuration.listeners[index][keyPath: path])
            },
            copy: { source, index, target in
                target.listeners[index][keyPath: path] = source.listeners[index][keyPath: path]
            }
        )
    }

    private static func value<Value>(
        of text: String?, _ format: ValueFormat<Value>
    ) throws(RefusedValue) -> Value {
        if let text { return try format.read(text) }
        guard let absent = format.absent else {
            throw RefusedValue(
                complaint: "the key has no value",
                cure: "Give \(format.expectation), or delete the key.")
        }
        return absent
    }
}
