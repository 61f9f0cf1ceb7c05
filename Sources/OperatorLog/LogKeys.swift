import Logging

/// The dotted keys of metadata in log lines of both planes.
package enum LogKeys {
    package static let hint = "hint"
    package static let setting = "setting"
    package static let error = "error"
    package static let reason = "reason"
    /// Events like this one that had no line.
    package static let suppressed = "log.suppressed"
    /// The same, with those of other addresses.
    package static let suppressedOfAll = "log.suppressed_of_all"

    // MARK: Data plane
    package static let listener = "listener.address"
    package static let listenerTLS = "listener.tls"
    package static let listenerProtocol = "listener.protocol"
    /// True when clients without a user name may connect.
    package static let listenerAnonymous = "listener.anonymous"
    /// The place of a connection in the broker's table with its turn there, such as `17.3`: unique
    /// for as long as the broker runs.
    package static let connection = "connection.id"
    package static let address = "connection.address"
    /// The two peers that compete for a client identifier: the connected one, then the waiting one.
    package static let peers = "connection.addresses"
    package static let delay = "delay_ms"
    package static let memoryUsed = "memory.used_bytes"
    package static let memoryLimit = "memory.limit_bytes"
    package static let bytesWaiting = "store.waiting_bytes"
    package static let client = "client.id"
    /// The name of a client's device, and its app.
    package static let device = "device.name"
    package static let app = "device.app"
    package static let zone = "device.time_zone"
    package static let cleanSession = "session.clean"
    package static let sessionPresent = "session.present"
    package static let statement = "mqtt.statement"
    package static let explanation = "mqtt.violation"
    package static let tlsFailure = "tls.failure"
    package static let proxyFailure = "proxy.failure"
    package static let webSocketFailure = "websocket.failure"
    package static let user = "user.name"
    package static let topic = "topic"
    /// The publisher's identifier of a message.
    package static let messageID = "message.id"
    package static let rule = "acl.line"
    /// Why a login was refused, or not decided.
    package static let login = "login.refusal"
    package static let loginServiceURL = "login_service.url"
    package static let loginKeysURL = "login_keys.url"
    /// Their number.
    package static let loginKeys = "login_keys.count"
    /// Wrong passwords that began a lock, and how long it lasts.
    package static let wrongPasswords = "lockout.wrong_passwords"
    package static let lockSeconds = "lockout.seconds"
    /// The identifier of a ban.
    package static let ban = "ban.id"
    /// The kind of what the ban shuts out (client, user or address), and which one.
    package static let banKind = "ban.kind"
    package static let banTarget = "ban.of"
    /// The time from which on it does not count; "never" until it is lifted.
    package static let banExpires = "ban.expires"
    package static let banReason = "ban.reason"
    /// Open connections, and those that a drain has closed.
    package static let connections = "connections"
    package static let connectionsClosed = "drain.closed"
    package static let perSecond = "drain.per_second"
    package static let payloadBytes = "payload.bytes"
    /// Messages that the line is about.
    package static let count = "messages"

    // MARK: Admin plane
    package static let adminPeer = "admin.peer"
    package static let adminReason = "admin.reason"
    package static let adminLimit = "admin.limit"
    package static let adminScope = "admin.scope"
    package static let adminToken = "admin.token_name"
    package static let messages = "admin.messages"
    package static let retryAfter = "admin.retry_after_s"
    package static let durationMicroseconds = "http.duration_us"
    package static let method = "http.method"
    package static let path = "http.path"
    package static let problem = "http.problem"
    package static let status = "http.status"
    package static let request = "http.request_id"

    // MARK: Webhook
    package static let webhookURL = "webhook.url"
    package static let webhookEvents = "webhook.events"
    /// Failed attempts since the last one that succeeded.
    package static let webhookFailures = "webhook.failures"
    /// Time until the next attempt.
    package static let webhookPause = "webhook.pause_ms"

    /// True for a key of our own whose value is a number or a truth value, and for one that says so
    /// by its unit. Other keys hold names that others chose, and a name of digits is a string.
    static func isNumber(_ key: String) -> Bool {
        numbers.contains(key) || units.contains { key.hasSuffix($0) }
    }

    private static let units = ["_ms", "_us", "_s", "_bytes", ".bytes", ".count", ".offset"]

    private static let numbers: Set<String> = [
        suppressed, suppressedOfAll, listenerAnonymous, cleanSession, sessionPresent,
        wrongPasswords, lockSeconds, connections, connectionsClosed, perSecond, count, adminLimit,
        messages, status, webhookEvents, webhookFailures, "store.groups", "store.queued",
        "log.dropped", "log.omitted",
    ]
}

extension Logger.Metadata {
    /// Adds how many events had no line, if there were any.
    package func suppressing(_ count: Int) -> Self {
        var result = self
        if count > 0 { result[LogKeys.suppressed] = "\(count)" }
        return result
    }
}
