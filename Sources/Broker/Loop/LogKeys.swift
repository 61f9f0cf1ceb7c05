/// The dotted keys of the broker's log, in one place so that they stay the same everywhere.
enum LogKeys {
    static let connection = "connection.id"
    static let address = "connection.address"
    /// Both of two who fight over a client identifier: who is connected, and who waits.
    static let peers = "connection.addresses"
    static let delay = "delay_ms"
    static let client = "client.id"
    static let cleanSession = "session.clean"
    static let sessionPresent = "session.present"
    static let reason = "reason"
    static let statement = "mqtt.statement"
    static let explanation = "mqtt.violation"
    static let tlsFailure = "tls.failure"
    static let proxyFailure = "proxy.failure"
    static let hint = "hint"
    static let setting = "setting"
    static let user = "user.name"
    static let topic = "topic"
    static let rule = "acl.line"
    static let suppressed = "log.suppressed"
    static let listener = "listener.address"
    static let error = "error"
}
