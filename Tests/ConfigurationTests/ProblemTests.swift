import Testing

@testable import OperatorConfiguration

@Suite("Error messages about the configuration")
struct ProblemTests {
    /// A document, and the expected line.
    static let values: [(yaml: String, problem: String)] = [
        // Numbers.
        (
            "listeners:\n  - port: 70000",
            "hermes.yaml:2: listeners[0].port: 70000 is not a port. Give 0 to 65535."
        ),
        (
            "listeners: [{port: 1}, {port: x}]",
            "hermes.yaml:1: listeners[1].port: x is not a port. Give 0 to 65535."
        ),
        (
            "admin:\n  port: -1",
            "hermes.yaml:2: admin.port: -1 is not a port. Give 0 to 65535."
        ),
        (
            "limits:\n  max_in_flight: 0",
            "hermes.yaml:2: limits.max_in_flight: 0 is too small. Give 1 to 65535."
        ),
        (
            "limits:\n  max_in_flight: 65536",
            "hermes.yaml:2: limits.max_in_flight: 65536 is too large. Give 1 to 65535."
        ),
        (
            "limits: {max_sessions: 99999999999999999999999}",
            "hermes.yaml:1: limits.max_sessions: 99999999999999999999999 is too large. Give 1 to 10000000."
        ),
        (
            "limits: {max_sessions: -99999999999999999999999}",
            "hermes.yaml:1: limits.max_sessions: -99999999999999999999999 is too small. Give 1 to 10000000."
        ),
        (
            "limits: {queue_messages: 1_000}",
            "hermes.yaml:1: limits.queue_messages: 1_000 is not a whole number. Give 1 to 65000."
        ),
        (
            "limits: {queue_messages: 1.5}",
            "hermes.yaml:1: limits.queue_messages: \"1.5\" is not a whole number. Give 1 to 65000."
        ),
        (
            "limits: {queue_messages: \"-\"}",
            "hermes.yaml:1: limits.queue_messages: - is not a whole number. Give 1 to 65000."
        ),
        (
            "limits: {max_connections: none}",
            "hermes.yaml:1: limits.max_connections: none is not a whole number. Give 1 to 10000000. Or auto."
        ),
        ("orders: {qos: 3}", "hermes.yaml:1: orders.qos: 3 is not a QoS. Give 0 to 2."),
        // Times.
        (
            "sys_interval: 500ms",
            "hermes.yaml:1: sys_interval: 500ms is too small. Give 1s to 1h. Or 0."
        ),
        (
            "limits:\n\n  connect_timeout: 10",
            "hermes.yaml:3: limits.connect_timeout: 10 has no unit. Write 10s, or another of ms, s, m, h or d."
        ),
        (
            "limits: {connect_timeout: 10sec}",
            "hermes.yaml:1: limits.connect_timeout: 10sec does not end in a known unit. Use a whole number with ms, s, m, h or d, such as 10s."
        ),
        (
            "limits: {connect_timeout: soon}",
            "hermes.yaml:1: limits.connect_timeout: soon is not a time. Give a whole number with its unit, such as 10s."
        ),
        (
            "limits: {connect_timeout: 0s}",
            "hermes.yaml:1: limits.connect_timeout: 0s is too small. Give 100ms to 1h."
        ),
        (
            "limits: {session_expiry: 9223372036854775807d}",
            "hermes.yaml:1: limits.session_expiry: 9223372036854775807d is too large. Give 1s to 3650d."
        ),
        (
            "limits: {max_keep_alive: 0s}",
            "hermes.yaml:1: limits.max_keep_alive: 0s is too small. Give 1s to 65535s. Or off."
        ),
        (
            "limits: {connect_timeout: 1h30m}",
            "hermes.yaml:1: limits.connect_timeout: 1h30m joins several units. Give one: 90m."
        ),
        (
            "limits: {session_expiry: 2hours}",
            "hermes.yaml:1: limits.session_expiry: 2hours does not end in a known unit. Use a whole number with ms, s, m, h or d, such as 2h."
        ),
        // Sizes.
        (
            "limits: {max_packet: 1mb}",
            "hermes.yaml:1: limits.max_packet: 1mb does not end in a known unit. Use a whole number with KiB, MiB or GiB, such as 1MiB."
        ),
        (
            "wakes:\n  rules:\n    - none #",
            "hermes.yaml:3: wakes.rules: none is no rule: it needs a kind and a topic filter. Write such as `alert orders/#`. In YAML a # behind a blank begins a comment: put the rule in quotes, such as - \"none #\"."
        ),
        (
            "limits: {max_packet: 330KB}",
            "hermes.yaml:1: limits.max_packet: 330KB does not end in a known unit. Use a whole number with KiB, MiB or GiB, such as 330KiB."
        ),
        (
            "limits: {max_packet: 257MiB}",
            "hermes.yaml:1: limits.max_packet: 257MiB is too large. Give 64 to 256MiB."
        ),
        (
            "limits: {max_packet: 268435457}",
            "hermes.yaml:1: limits.max_packet: 268435457 is too large. Give 64 to 256MiB."
        ),
        (
            "limits: {max_packet: 8589934592GiB}",
            "hermes.yaml:1: limits.max_packet: 8589934592GiB is too large. Give 64 to 256MiB."
        ),
        // Words.
        (
            "listeners: [{allow_anonymous: yes}]",
            "hermes.yaml:1: listeners[0].allow_anonymous: yes is neither true nor false. Give true or false. Or auto."
        ),
        (
            "logging:\n  level: loud\n",
            "hermes.yaml:2: logging.level: loud is not a log level. Give trace, debug, info, notice, warning, error or critical."
        ),
        (
            "limits: {queue_policy: drop-oldest}",
            "hermes.yaml:1: limits.queue_policy: drop-oldest is not a queue policy. Give drop_oldest or drop_newest."
        ),
        (
            "durability: fast",
            "hermes.yaml:1: durability: fast is not a durability. Give sync, none, or interval with a time: interval 50ms."
        ),
        (
            "durability: interval",
            "hermes.yaml:1: durability: interval is not a durability. Give sync, none, or interval with a time: interval 50ms."
        ),
        (
            "durability: interval 50",
            "hermes.yaml:1: durability: \"interval 50\" has no unit. Write interval 50ms."
        ),
        (
            "durability: interval 2h",
            "hermes.yaml:1: durability: 2h is too large. Give 1ms to 1m."
        ),
        // Addresses and paths.
        (
            "admin: {address: example.com}",
            "hermes.yaml:1: admin.address: \"example.com\" is not a numeric address. Give a numeric IPv4 or IPv6 address, or localhost. 0.0.0.0 and :: stand for all addresses."
        ),
        (
            "admin: {address: \"[::1]\"}",
            "hermes.yaml:1: admin.address: \"[::1]\" is not a numeric address. Leave out the brackets."
        ),
        (
            "password_file: ~/users",
            "hermes.yaml:1: password_file: \"~/users\" begins with ~, which only a shell expands. Write the path in full."
        ),
        (
            "data_directory: ''",
            "hermes.yaml:1: data_directory: the path is empty. Give the path of a folder."
        ),
        (
            "data_directory: \"a\\0b\"",
            "hermes.yaml:1: data_directory: \"a\\u{0}b\" holds a control character. Give a path without one."
        ),
        (
            "admin: {unix_socket: /\(String(repeating: "x", count: 107))}",
            "hermes.yaml:1: admin.unix_socket: the path is 108 bytes long, the system takes 107. Give a shorter path."
        ),
        // Topics.
        (
            "orders: {topic_template: 'orders/{sales_id}/status'}",
            "hermes.yaml:1: orders.topic_template: \"orders/{sales_id}/status\" does not hold {order_id} as a whole level. Give a topic name with {sales_id} and {order_id}, such as orders/{sales_id}/{order_id}."
        ),
        (
            "orders: {topic_template: 'x{sales_id}/{sales_id}/{order_id}'}",
            "hermes.yaml:1: orders.topic_template: \"x{sales_id}/{sales_id}/{order_id}\" holds the level \"x{sales_id}\". Braces may only stand around a whole level: {sales_id} and {order_id}."
        ),
        (
            "orders: {channel_template: 'a/{sales_id}/#'}",
            "hermes.yaml:1: orders.channel_template: \"a/{sales_id}/#\" holds a wildcard. Write a topic name without + and #."
        ),
        (
            "orders: {channel_template: '$a/{sales_id}'}",
            "hermes.yaml:1: orders.channel_template: \"$a/{sales_id}\" begins with $, and such topics are the broker's own. Give a topic name that begins otherwise."
        ),
        // Keys.
        (
            "limits:\n  max_in_fligt: 20",
            "hermes.yaml:2: limits.max_in_fligt: unknown key. Did you mean max_in_flight?"
        ),
        ("port: 1883", "hermes.yaml:1: port: unknown key. It belongs to listeners[].port."),
        (
            "password_fil: x",
            "hermes.yaml:1: password_fil: unknown key. Did you mean password_file?"
        ),
        (
            "conect_timeout: 1s",
            "hermes.yaml:1: conect_timeout: unknown key. Did you mean limits.connect_timeout?"
        ),
        (
            "orders: {zzz: 1}",
            "hermes.yaml:1: orders.zzz: unknown key. Delete it. Known here: channel_template, qos, topic_template."
        ),
        (
            "? [a, b]\n: 1",
            "hermes.yaml:1: a list stands where a key belongs. Write the key as one word."
        ),
        (
            "\"evil\\e[31m\\nkey\": 1",
            "hermes.yaml:1: evil\\u{1B}[31m\\nkey: unknown key. Delete it. Known here: acl_file, admin, auth, data_directory, disk_reserve, durability, limits, listeners, logging, orders, password_file, receipts, sys_interval, wakes, webhook."
        ),
        // Shapes.
        (
            "- port: 1",
            "hermes.yaml:1: the file holds a list where keys belong. Begin with a key, such as `listeners:`."
        ),
        (
            "just text",
            "hermes.yaml:1: the file holds a single value where keys belong. Begin with a key, such as `listeners:`."
        ),
        (
            "limits:\n  - max_packet: 1MiB",
            "hermes.yaml:2: limits: a list stands where keys belong. Give keys with values: collapsible, connect_rate, connect_rate_per_address, connect_timeout, connections_per_address, device_bytes, drain_timeout, handshakes_per_address, history_bytes, idempotency_keys, lockout_attempts, lockout_attempts_per_address, lockout_time, lockout_window, max_client_id, max_connect_packet, max_connections, max_handshakes, max_in_flight, max_inbound_qos2, max_keep_alive, max_packet, max_retained, max_sessions, max_subscriptions, max_topic_levels, max_unacknowledged_bytes, max_unacknowledged_publishes, max_user_name, memory, output_bytes, pushes, queue_bytes, queue_messages, queue_policy, receipts, report_bytes, retained_bytes, scheduled, scheduled_bytes, session_bytes, session_bytes_per_user, session_expiry, subscription_bytes, tag_bytes, unfinished_bytes."
        ),
        (
            "listeners:\n  port: 1",
            "hermes.yaml:2: listeners: a mapping of keys stands where a list belongs. Begin each listener with a dash, such as `- port: 1883`."
        ),
        (
            "listeners:\n  - 1883",
            "hermes.yaml:2: listeners[0]: a single value stands where keys belong. Give keys with values: address, allow_anonymous, port, protocol, proxy_from, tls, websocket."
        ),
        (
            "listeners: []",
            "hermes.yaml:1: listeners: the list is empty, and a broker without a listener serves nobody. Add one, or delete the key to listen on 127.0.0.1:1883."
        ),
        // Text that is no accepted YAML.
        (
            "limits:\n\tmax_packet: 1",
            "hermes.yaml:2: the YAML cannot be read at column 1: found character that cannot start any token. Check this line and the one above: indent with spaces, put a space behind each colon, close quotes and brackets."
        ),
        (
            "a: *nowhere",
            "hermes.yaml:1: the YAML cannot be read at column 4: found undefined alias. Check this line and the one above: indent with spaces, put a space behind each colon, close quotes and brackets."
        ),
        (
            "a: &x [1, *x]",
            "hermes.yaml:1: the YAML cannot be read at column 11: found undefined alias. Check this line and the one above: indent with spaces, put a space behind each colon, close quotes and brackets."
        ),
        (
            "a:\n  \(String(repeating: "[", count: 32))",
            "hermes.yaml:2: nests more than 32 levels deep. Close what is open: no setting needs so many levels."
        ),
        (
            "durability: none\n---\ndurability: none\n",
            "hermes.yaml:2: the YAML cannot be read at column 1: but found another document. Check this line and the one above: indent with spaces, put a space behind each colon, close quotes and brackets."
        ),
        (
            "a: 1\nb: \u{7}",
            "hermes.yaml:2: holds the control character U+0007. Save the file as UTF-8 text without it."
        ),
    ]

    @Test("names file, line, key, mistake and cure", arguments: values)
    func golden(yaml: String, problem: String) {
        #expect(problems(yaml) == [problem])
    }

    @Test(
        "finds nothing wrong with a file without content",
        arguments: ["", "\n\n", "# only a comment\n", "---\n", "~", "limits:\nlisteners:\n"])
    func emptyFiles(yaml: String) throws {
        #expect(try load(yaml) == HermesConfiguration())
    }

    @Test("reports every mistake of every layer at once, in order")
    func allAtOnce() {
        var overrides = CommandLineOverrides()
        overrides.ports = ["1883", "port"]
        overrides.queueMessages = "0"
        overrides.connectTimeout = "2"
        let found = problems(
            """
            durability: fast
            limits:
              max_packet: 1GiB
              max_inflight: 20
            logging: {level: loud, format: xml}
            """,
            environment: [
                "HERMES_LIMITS_MAX_SESSIONS": "many",
                "HERMES_LISTENER_0_PORT": "1883",
                "PATH": "/bin",
            ],
            overrides: overrides)
        #expect(
            found.map { String($0.prefix { $0 != " " }) } == [
                "hermes.yaml:1:", "hermes.yaml:3:", "hermes.yaml:4:", "hermes.yaml:5:",
                "hermes.yaml:5:", "HERMES_LIMITS_MAX_SESSIONS:", "HERMES_LISTENER_0_PORT:",
                "--port:", "--connect-timeout:", "--queue-messages:",
            ])
        #expect(
            found.suffix(5) == [
                "HERMES_LIMITS_MAX_SESSIONS: limits.max_sessions: many is not a whole number. Give 1 to 10000000.",
                "HERMES_LISTENER_0_PORT: unknown variable. Did you mean HERMES_LISTENERS_0_PORT?",
                "--port: listeners[1].port: port is not a port. Give 0 to 65535.",
                "--connect-timeout: limits.connect_timeout: 2 has no unit. Write 2s, or another of ms, s, m, h or d.",
                "--queue-messages: limits.queue_messages: 0 is too small. Give 1 to 65000.",
            ])
    }

    @Test("keeps a hundred problems and counts the rest")
    func bounded() {
        let yaml = (1...150).map { "unknown\($0): 1" }.joined(separator: "\n")
        let found = problems(yaml)
        #expect(found.count == 101)
        #expect(found.last == "and 50 more. Correct those above first.")
    }

    @Test("finds duplicate keys together with everything else")
    func duplicates() {
        let found = problems(
            """
            listeners:
              - port: 1
                address: 127.0.0.1
                port: x
              - {port: 2, port: 3, port: 4}
            durability: none
            "durability": fast
            """)
        #expect(
            found == [
                "hermes.yaml:4: listeners[0].port: given more than once, first in line 2. Keep one of them.",
                "hermes.yaml:4: listeners[0].port: x is not a port. Give 0 to 65535.",
                "hermes.yaml:5: listeners[1].port: given more than once, first in line 5. Keep one of them.",
                "hermes.yaml:5: listeners[1].port: given more than once, first in line 5. Keep one of them.",
                "hermes.yaml:7: durability: given more than once, first in line 6. Keep one of them.",
                "hermes.yaml:7: durability: fast is not a durability. Give sync, none, or interval with a time: interval 50ms.",
            ])
    }

    @Test("finds any number of duplicates in one pass")
    func manyDuplicates() {
        let found = problems(String(repeating: "durability: none\n", count: 5_000))
        #expect(found.count == 101)
        #expect(
            found.first
                == "hermes.yaml:5000: durability: given more than once, first in line 1. Keep one of them."
        )
    }

    @Test("names a duplicate key that it cannot tell apart")
    func anchoredDuplicate() {
        #expect(
            problems("&a durability: none\n*a : none") == [
                "hermes.yaml:1: the key durability is given more than once. Keep one of them."
            ])
    }

    @Test("escapes control characters for the terminal")
    func escaping() {
        let right = "\u{202E}"
        #expect(
            problems("logging: {level: \"\\e[2J\(right)x\"}").first
                == "hermes.yaml:1: logging.level: \"\\u{1B}[2J\\u{202E}x\" is not a log level. Give trace, debug, info, notice, warning, error or critical."
        )
        #expect(quoted(String(repeating: "a", count: 500)).unicodeScalars.count == 81)
        #expect(quoted("") == "\"\"")
    }

    @Test("suggests nothing for names too long to be typing errors")
    func longNames() {
        let name = String(repeating: "x", count: 1_000)
        #expect(
            problems("\(name): 1").first?.hasPrefix(
                "hermes.yaml:1: \(name.prefix(200))…: unknown key. Delete it.") == true)
    }
}
