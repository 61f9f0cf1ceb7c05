import Testing

@testable import OperatorConfiguration

/// Loads a YAML text as `hermes.yaml`.
func load(
    _ yaml: String, environment: [String: String] = [:],
    overrides: CommandLineOverrides = CommandLineOverrides()
) throws(ConfigurationError) -> HermesConfiguration {
    try ConfigurationLoader(
        source: .text(yaml, name: "hermes.yaml"), environment: environment, overrides: overrides
    ).load()
}

/// The lines shown to an operator; empty when the configuration is accepted.
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

/// A value for each accepted key that differs from the default and fits the others.
let changedValues: [String: String] = [
    "listeners[].address": "::1",
    "listeners[].port": "1884",
    "listeners[].allow_anonymous": "true",
    "listeners[].proxy_from": "10.0.0.0/8,::1",
    "listeners[].protocol": "websocket",
    "listeners[].websocket.path": "/broker",
    "listeners[].websocket.origins": "https://app.example.org,http://localhost:3000",
    "listeners[].websocket.token": "any",
    "listeners[].tls.certificate": "/c1.crt,/c2.crt",
    "listeners[].tls.key": "/c1.key,/c2.key",
    "listeners[].tls.minimum_version": "1.3",
    "listeners[].tls.client_certificates": "optional",
    "listeners[].tls.client_ca_file": "/ca.crt",
    "listeners[].tls.crl_file": "/ca.crl",
    "listeners[].tls.user_name_from_certificate": "true",
    "data_directory": "/var/lib/hermes",
    "password_file": "/etc/hermes/users",
    "acl_file": "/etc/hermes/acl",
    "auth.sources": "file",
    "auth.jwt.key_file": "/login.pem",
    "auth.jwt.secret_file": "/login.secret",
    "auth.jwt.jwks_file": "/login.json",
    "auth.jwt.jwks_url": "https://login.example/keys",
    "auth.jwt.ca_file": "/login.ca",
    "auth.jwt.refresh": "1h",
    "auth.jwt.allow_plain": "true",
    "auth.jwt.issuer": "https://login.example",
    "auth.jwt.audience": "hermes,shop",
    "auth.jwt.user_claim": "user",
    "auth.jwt.user_name": "ignore",
    "auth.jwt.publish_claim": "may_publish",
    "auth.jwt.subscribe_claim": "may_subscribe",
    "auth.jwt.leeway": "1m",
    "auth.jwt.require_expiry": "false",
    "auth.jwt.expired": "keep",
    "auth.http.url": "https://login.example/hermes",
    "auth.http.ca_file": "/service.ca",
    "auth.http.token_file": "/service.token",
    "auth.http.allow_plain": "true",
    "auth.http.timeout": "3s",
    "auth.http.max_in_flight": "7",
    "auth.http.max_waiting": "0",
    "auth.http.remember": "1h",
    "auth.http.remember_denied": "0",
    "auth.http.when_unavailable": "remembered",
    "auth.http.outdated": "1d",
    "auth.http.breaker_failures": "9",
    "auth.http.breaker_pause": "1m",
    "durability": "interval 50ms",
    "disk_reserve": "1GiB",
    "sys_interval": "0",
    "admin.address": "127.0.0.2",
    "admin.port": "8081",
    "admin.unix_socket": "/run/hermes.sock",
    "admin.tokens_file": "/etc/hermes/tokens",
    "admin.max_failures": "5",
    "admin.tls.certificate": "/b.crt",
    "admin.tls.key": "/b.key",
    "admin.tls.minimum_version": "1.3",
    "admin.tls.client_ca_file": "/ca.crt",
    "admin.allow_plain": "true",
    "admin.page": "off",
    "limits.connect_timeout": "250ms",
    "limits.max_keep_alive": "20m",
    "limits.max_connect_packet": "64KiB",
    "limits.max_packet": "2MiB",
    "limits.max_client_id": "23",
    "limits.max_user_name": "300",
    "limits.max_topic_levels": "16",
    "limits.max_subscriptions": "50",
    "limits.subscription_bytes": "3MiB",
    "limits.max_in_flight": "65535",
    "limits.max_inbound_qos2": "10",
    "limits.max_unacknowledged_publishes": "11",
    "limits.max_unacknowledged_bytes": "65537",
    "limits.queue_messages": "12",
    "limits.queue_bytes": "1GiB",
    "limits.queue_policy": "drop_newest",
    "limits.max_sessions": "13",
    "limits.session_bytes": "99MiB",
    "limits.session_bytes_per_user": "off",
    "limits.max_retained": "15",
    "limits.retained_bytes": "2GiB",
    "limits.idempotency_keys": "0",
    "limits.receipts": "20",
    "limits.scheduled": "21",
    "limits.scheduled_bytes": "3GiB",
    "limits.collapsible": "23",
    "limits.pushes": "22",
    "limits.history_bytes": "0",
    "limits.report_bytes": "0",
    "limits.tag_bytes": "0",
    "limits.device_bytes": "0",
    "limits.session_expiry": "90d",
    "limits.max_connections": "14",
    "limits.connections_per_address": "18",
    "limits.connect_rate": "off",
    "limits.connect_rate_per_address": "19",
    "limits.max_handshakes": "17",
    "limits.handshakes_per_address": "off",
    "limits.lockout_attempts": "5",
    "limits.lockout_attempts_per_address": "off",
    "limits.lockout_window": "10m",
    "limits.lockout_time": "1h",
    "limits.memory": "3GiB",
    "limits.unfinished_bytes": "77MiB",
    "limits.output_bytes": "15KiB",
    "limits.drain_timeout": "0s",
    "logging.level": "trace",
    "logging.connections": "debug",
    "logging.format": "json",
    "orders.topic_template": "a/{order_id}/{sales_id}",
    "orders.channel_template": "sales/{sales_id}",
    "orders.qos": "2",
    "webhook.url": "https://office.example:8443/hermes?a=b%20c",
    "webhook.secret_file": "/etc/hermes/secret",
    "webhook.ca_file": "/etc/hermes/office.crt",
    "webhook.timeout": "2s",
    "webhook.max_pause": "1m",
    "webhook.allow_plain": "true",
    "receipts.topics": "orders/#,+/news",
    "wakes.rules":
        "none a/#,alert orders/# title=T subtitle=S body=B args=c+d sound=default badge thread category=C level=time-sensitive channel=N mutable quiet=21:00-06:30+drop uncapped priority=5 expires=1h fields=a+b,background + priority=1,alert b thread=news expires=0s",
    "wakes.merge": "1m",
    "wakes.reconnect_window": "0s",
    "wakes.unanswered": "5s",
    "wakes.clear_badge": "true",
    "wakes.quiet_hours": "22:00-07:00",
    "wakes.time_zone": "Europe/Berlin",
    "wakes.cap": "20 per 1d",
    "wakes.apns.key_file": "/etc/hermes/AuthKey.p8",
    "wakes.apns.key_id": "ABC123DEFG",
    "wakes.apns.team_id": "DEF123GHIJ",
    "wakes.apns.certificate": "/etc/hermes/app.p12",
    "wakes.apns.certificate_key": "/etc/hermes/app.key",
    "wakes.apns.certificate_password_file": "/etc/hermes/app.password",
    "wakes.apns.apps":
        "com.example.a key_file=/a.p8 key_id=AAAAAAAAA1 team_id=TTTTTTTTT1 environment=sandbox,com.example.b certificate=/b.p12 password_file=/b.password",
    "wakes.apns.production": "localhost:2197",
    "wakes.apns.sandbox": "127.0.0.1:2198",
    "wakes.apns.ca_file": "/etc/hermes/apple.crt",
    "wakes.apns.connections": "32",
    "wakes.fcm.service_account": "/etc/hermes/account.json",
    "wakes.fcm.apps": "com.example.a service_account=/a.json,com.example.b service_account=/b.json",
    "wakes.fcm.endpoint": "localhost:2199",
    "wakes.fcm.ca_file": "/etc/hermes/google.crt",
    "wakes.fcm.connections": "4",
    "wakes.webhook.url": "https://office.example/wakes",
    "wakes.webhook.secret_file": "/etc/hermes/wakes.secret",
    "wakes.webhook.ca_file": "/etc/hermes/office.crt",
    "wakes.webhook.timeout": "2s",
    "wakes.webhook.max_pause": "1m",
    "wakes.webhook.allow_plain": "true",
]

extension Setting: CustomTestStringConvertible {
    public var testDescription: String { pattern }

    /// Values of other keys that this one requires, by their patterns.
    var companions: [String: String] {
        // Behind a proxy, loopback does not admit anonymous clients.
        if pattern == "listeners[].proxy_from" { return ["listeners[].allow_anonymous": "true"] }
        if pattern == "listeners[].websocket.token" {
            return [
                "listeners[].protocol": "websocket", "auth.http.url": "https://example.org",
            ]
        }
        if pattern.hasPrefix("listeners[].websocket.") {
            return ["listeners[].protocol": "websocket"]
        }
        for section in ["webhook", "wakes.webhook"] where pattern.hasPrefix("\(section).") {
            return [
                "\(section).url": "https://office.example", "\(section).secret_file": "/secret",
            ].filter { $0.key != pattern }
        }
        if ["auth.http.ca_file", "auth.http.token_file"].contains(pattern) {
            return ["auth.http.url": "https://login.example"]
        }
        if pattern == "wakes.fcm.apps" { return ["wakes.fcm.service_account": "/a.json"] }
        if pattern.hasPrefix("wakes.apns.") {
            let certificate = ["wakes.apns.certificate": "/a.p12"]
            let key = [
                "wakes.apns.key_file": "/a.p8", "wakes.apns.key_id": "AAAAAAAAA1",
                "wakes.apns.team_id": "AAAAAAAAA2",
            ]
            var result = pattern.contains("certificate") ? certificate : key
            result[pattern] = nil
            return result
        }
        if ["issuer", "audience", "ca_file"].contains(where: { pattern == "auth.jwt.\($0)" }) {
            return ["auth.jwt.jwks_url": "https://login.example"]
        }
        let tls = isOfListener ? "listeners[].tls" : "admin.tls"
        guard pattern.hasPrefix(tls) else { return [:] }
        var result =
            isOfListener
            ? ["\(tls).certificate": "/a.crt,/b.crt", "\(tls).key": "/a.key,/b.key"]
            : ["\(tls).certificate": "/a.crt", "\(tls).key": "/a.key"]
        switch pattern {
        case "listeners[].tls.client_ca_file":
            result["\(tls).client_certificates"] = "required"
        case "\(tls).client_certificates": result["\(tls).client_ca_file"] = "/a"
        case "\(tls).crl_file", "\(tls).user_name_from_certificate":
            result["\(tls).client_certificates"] = "required"
            result["\(tls).client_ca_file"] = "/a"
        default: break
        }
        result[pattern] = nil
        return result
    }

    /// The companions as an environment.
    var companionVariables: [String: String] {
        var variables: [String: String] = [:]
        for setting in Setting.all {
            variables[setting.variable(at: 0)] = companions[setting.pattern]
        }
        return variables
    }

    /// A second value for a key that has no default.
    var anotherValue: String {
        switch pattern {
        case "listeners[].proxy_from": "192.0.2.1"
        case "listeners[].websocket.origins": "http://localhost"
        case "webhook.url", "wakes.webhook.url", "auth.jwt.jwks_url", "auth.http.url":
            "http://localhost"
        case "wakes.apns.key_id", "wakes.apns.team_id": "BBBBBBBBB1"
        case "wakes.rules": "alert b/#"
        case "wakes.apns.apps": "c certificate=/c.p12"
        case "wakes.fcm.apps": "c service_account=/c.json"
        default: "/initial"
        }
    }

    /// The line of the value in ``yaml(_:)``.
    var line: Int { pattern.split(separator: ".").count }

    /// The smallest YAML document that sets the key.
    func yaml(_ value: String) -> String {
        let names = pattern.replacing("[]", with: "").split(separator: ".")
        if names.count == 3 {
            // Keys of another section, which begin with an earlier letter, stand behind it.
            let others = companions.sorted { $0.key > $1.key }.map {
                let path = $0.key.split(separator: ".")
                if path[0] != pattern.split(separator: ".")[0] {
                    return "\(path[0]):\n  \(path[1]):\n    \(path[2]): \($0.value)\n"
                }
                // A key of the listener itself stands beside the section.
                return path.count == 3
                    ? "      \(path[2]): \($0.value)\n" : "    \(path[1]): \($0.value)\n"
            }
            let section =
                isOfListener ? "listeners:\n  - \(names[1]):\n" : "\(names[0]):\n  \(names[1]):\n"
            return "\(section)      \(names[2]): \(value)\n\(others.joined())"
        }
        if isOfListener {
            let others = companions.map {
                "    \($0.key.split(separator: ".")[1]): \($0.value)\n"
            }
            return "listeners:\n  - \(names[1]): \(value)\n\(others.joined())"
        }
        if names.count == 1 { return "\(names[0]): \(value)\n" }
        let others = companions.map { "  \($0.key.split(separator: ".")[1]): \($0.value)\n" }
        return "\(names[0]):\n  \(names[1]): \(value)\n\(others.joined())"
    }
}
