import Testing

@testable import OperatorConfiguration

/// Loads a YAML text that stands for `hermes.yaml`.
func load(
    _ yaml: String, environment: [String: String] = [:],
    overrides: CommandLineOverrides = CommandLineOverrides()
) throws(ConfigurationError) -> HermesConfiguration {
    try ConfigurationLoader(
        source: .text(yaml, name: "hermes.yaml"), environment: environment, overrides: overrides
    ).load()
}

/// The lines that an operator reads; empty when the configuration is accepted.
func problems(
    _ yaml: String = "", environment: [String: String] = [:],
    overrides: CommandLineOverrides = CommandLineOverrides()
) -> [String] {
    do {
        _ = try load(yaml, environment: environment, overrides: overrides)
        return []
    } catch {
        return error.description.split(separator: "\n").map(String.init)
    }
}

/// A value for every key that is accepted, differs from the default and fits the others.
let changedValues: [String: String] = [
    "listeners[].address": "::1",
    "listeners[].port": "1884",
    "listeners[].allow_anonymous": "true",
    "data_directory": "/var/lib/hermes",
    "password_file": "/etc/hermes/users",
    "acl_file": "/etc/hermes/acl",
    "durability": "interval 50ms",
    "disk_reserve": "1GiB",
    "sys_interval": "0",
    "admin.address": "127.0.0.2",
    "admin.port": "8081",
    "admin.unix_socket": "/run/hermes.sock",
    "admin.tokens_file": "/etc/hermes/tokens",
    "admin.max_failures": "5",
    "limits.connect_timeout": "250ms",
    "limits.max_keep_alive": "20m",
    "limits.max_connect_packet": "64KiB",
    "limits.max_packet": "2MiB",
    "limits.max_topic_levels": "16",
    "limits.max_subscriptions": "50",
    "limits.max_in_flight": "65535",
    "limits.max_inbound_qos2": "10",
    "limits.max_unacknowledged_publishes": "11",
    "limits.max_unacknowledged_bytes": "65537",
    "limits.queue_messages": "12",
    "limits.queue_bytes": "1GiB",
    "limits.queue_policy": "drop_newest",
    "limits.max_sessions": "13",
    "limits.session_expiry": "90d",
    "limits.max_connections": "14",
    "limits.output_bytes": "15KiB",
    "limits.drain_timeout": "0s",
    "logging.level": "trace",
    "logging.format": "json",
    "orders.topic_template": "a/{orderId}/{salesId}",
    "orders.channel_template": "sales/{salesId}",
    "orders.qos": "2",
]

extension Setting: CustomTestStringConvertible {
    public var testDescription: String { pattern }

    /// The smallest YAML document that sets the key.
    func yaml(_ value: String) -> String {
        let names = pattern.replacing("[]", with: "").split(separator: ".")
        if isOfListener { return "listeners:\n  - \(names[1]): \(value)\n" }
        return names.count == 1
            ? "\(names[0]): \(value)\n" : "\(names[0]):\n  \(names[1]): \(value)\n"
    }
}
