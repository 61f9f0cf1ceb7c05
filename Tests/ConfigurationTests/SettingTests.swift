import Testing

@testable import OperatorConfiguration

@Suite("Every setting")
struct SettingTests {
    @Test("the table of values covers every key")
    func tableIsComplete() {
        #expect(Set(changedValues.keys) == Set(Setting.all.map(\.pattern)))
        #expect(Setting.all.count == Set(Setting.all.map(\.pattern)).count)
    }

    @Test("is read from YAML and lands in its own place only", arguments: Setting.all)
    func fromYAML(setting: Setting) throws {
        let value = try #require(changedValues[setting.pattern])
        let configuration = try load(setting.yaml(value))
        expectOnlyChange(setting, value, in: configuration)
    }

    @Test("is read from its environment variable", arguments: Setting.all)
    func fromEnvironment(setting: Setting) throws {
        let value = try #require(changedValues[setting.pattern])
        var environment = setting.companionVariables
        environment[setting.variable(at: 0)] = value
        let configuration = try load("", environment: environment)
        expectOnlyChange(setting, value, in: configuration)
    }

    @Test("wins in the environment over YAML", arguments: Setting.all)
    func environmentWins(setting: Setting) throws {
        let value = try #require(changedValues[setting.pattern])
        let initial = setting.show(HermesConfiguration(), 0)
        let yaml = setting.yaml(initial.isEmpty ? setting.anotherValue : initial)
        let configuration = try load(yaml, environment: [setting.variable(at: 0): value])
        #expect(setting.show(configuration, 0) == value)
    }

    /// Keys that restrict access: an empty value is an error, because it would lift the
    /// restriction.
    private static let guards = [
        "acl_file", "password_file", "listeners[].tls.crl_file", "admin.tls.client_ca_file",
        "listeners[].proxy_from", "webhook.ca_file", "wakes.apns.ca_file",
        "wakes.fcm.ca_file",
        "wakes.webhook.ca_file", "auth.jwt.key_file", "auth.jwt.secret_file", "auth.jwt.jwks_file",
        "auth.jwt.jwks_url", "auth.jwt.ca_file", "auth.jwt.issuer", "auth.jwt.audience",
        "auth.http.url", "auth.http.ca_file", "auth.http.token_file",
    ]

    @Test("shows its default as a text that it reads back", arguments: Setting.all)
    func defaultRoundTrips(setting: Setting) throws {
        let initial = setting.show(HermesConfiguration(), 0)
        var configuration = HermesConfiguration()
        if Self.guards.contains(setting.pattern) {
            #expect(throws: RefusedValue.self) { try setting.assign(nil, 0, &configuration) }
        } else {
            try setting.assign(initial.isEmpty ? nil : initial, 0, &configuration)
        }
        #expect(configuration == HermesConfiguration())
    }

    @Test(
        "refuses a list and a mapping where its value belongs, with place and cure",
        arguments: Setting.all.filter { !$0.isList })
    func refusesShapes(setting: Setting) {
        for (value, shape) in [("[1, 2]", "a list"), ("{a: 1}", "a mapping of keys")] {
            #expect(
                problems(setting.yaml(value)) == [
                    "hermes.yaml:\(setting.line): \(setting.key(at: 0)): \(shape) stands where one value belongs. Give \(setting.expectation)."
                ])
        }
    }

    /// Rules between the keys of certificates, and of the webhook, are in suites of their own.
    @Test(
        "without a value is either not set or an error",
        arguments: Setting.all.filter { setting in
            !setting.isList
                && ![
                    "listeners[].tls.client_ca_file", "admin.tls.certificate", "admin.tls.key",
                    "webhook.url", "webhook.secret_file", "wakes.apns.key_file",
                    "wakes.apns.key_id", "wakes.apns.team_id", "wakes.apns.certificate",
                    "wakes.webhook.url", "wakes.webhook.secret_file",
                ].contains(setting.pattern)
        })
    func emptyValues(setting: Setting) {
        let isOptional = [
            "listeners[].allow_anonymous", "admin.unix_socket", "admin.tokens_file",
            "limits.max_keep_alive", "limits.max_connections", "wakes.apns.certificate_key",
            "wakes.apns.certificate_password_file", "wakes.fcm.service_account",
        ].contains(setting.pattern)
        let complaint =
            "\(setting.key(at: 0)): the key has no value. Give \(setting.expectation), or delete the key."
        for empty in ["", "~", "null"] {
            #expect(
                problems(setting.yaml(empty))
                    == (isOptional ? [] : ["hermes.yaml:\(setting.line): \(complaint)"]))
        }
        let variable = setting.variable(at: 0)
        #expect(
            problems(environment: [variable: ""])
                == (isOptional ? [] : ["\(variable): \(complaint)"]))
    }

    /// Each flag belongs to a setting and uses its parser.
    @Test("is set by its flag", arguments: Setting.all.filter { $0.flag != nil })
    func fromFlag(setting: Setting) throws {
        let value = try #require(changedValues[setting.pattern])
        var overrides = CommandLineOverrides()
        switch setting.flag {
        case "--port": overrides.ports = [value]
        case "--allow-anonymous": overrides.allowAnonymous = value == "true"
        case "--data-directory": overrides.dataDirectory = value
        case "--max-in-flight": overrides.maxInFlight = value
        case "--max-packet": overrides.maxPacket = value
        case "--password-file": overrides.passwordFile = value
        case "--acl-file": overrides.aclFile = value
        case "--connect-timeout": overrides.connectTimeout = value
        case "--queue-messages": overrides.queueMessages = value
        case "--durability": overrides.durability = value
        case "--admin-port": overrides.adminPort = value
        case "--logging-level": overrides.loggingLevel = value
        default: Issue.record("\(setting.flag ?? "") is set by no member of CommandLineOverrides")
        }
        let configuration = try load("", overrides: overrides)
        expectOnlyChange(setting, value, in: configuration)
        if setting.flag != "--allow-anonymous" {
            let bad = try load(
                setting.yaml(value), environment: [setting.variable(at: 0): value],
                overrides: overrides)
            #expect(setting.show(bad, 0) == value)
        }
    }

    @Test("0 switches the $SYS topics off, with any unit or none", arguments: ["0", "0s", "00ms"])
    func zeroInterval(value: String) throws {
        #expect(try load("sys_interval: \(value)").sysInterval == .zero)
    }

    private func expectOnlyChange(
        _ setting: Setting, _ value: String, in configuration: HermesConfiguration
    ) {
        for other in Setting.all {
            let expected =
                other.pattern == setting.pattern
                ? value
                : setting.companions[other.pattern] ?? other.show(HermesConfiguration(), 0)
            #expect(other.show(configuration, 0) == expected, "\(other.pattern)")
        }
    }
}
