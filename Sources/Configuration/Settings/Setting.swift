/// One key an operator can set: its names, how its value is written, and where the value goes.
///
/// `Setting.all` is the single description of the configuration: the YAML file, the environment,
/// the flags, the search for unknown keys and the documentation all follow from it.
struct Setting: Sendable {
    /// The key with `[]` where a list's index goes: `limits.max_packet`, `listeners[].port`.
    let pattern: String
    /// The command-line flag that sets it; `nil` for most keys.
    let flag: String?
    /// Completes "Give ….".
    let expectation: String
    /// One line for the documentation, in an operator's words.
    let summary: String
    /// Reads a text into a configuration; the index is ignored outside lists, and must name a
    /// listener that exists inside. No text means that the key has no value.
    let assign:
        @Sendable (String?, _ index: Int, inout HermesConfiguration) throws(RefusedValue) -> Void
    /// The value as text that `assign` reads back; empty when it is not set.
    let show: @Sendable (HermesConfiguration, _ index: Int) -> String
    /// Copies the value from one configuration into another; the index must exist in both.
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

    /// Whether its value may also be a YAML list of texts, which commas join.
    var isList: Bool { Self.lists.contains(pattern) }

    private static let lists: Set<String> = [
        "listeners[].tls.certificate", "listeners[].tls.key", "listeners[].proxy_from",
    ]

    /// Whether it belongs to a listener.
    var isOfListener: Bool { pattern.hasPrefix("listeners[]") }

    /// Whether a running broker takes a new value; the others wait for its next start.
    var isReloadable: Bool {
        pattern == "logging.level"
            || pattern.hasPrefix("limits.") && !Self.limitsOfTheStart.contains(pattern)
    }

    /// Limits that the HTTP API and packets under way are held to as well.
    private static let limitsOfTheStart: Set<String> = [
        "limits.max_packet", "limits.max_connect_packet", "limits.max_topic_levels",
    ]
}

extension Setting {
    /// A key that exists once.
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
