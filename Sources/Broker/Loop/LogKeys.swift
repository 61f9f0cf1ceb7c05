/// The dotted keys of the broker's log, in one place so that they stay the same everywhere.
enum LogKeys {
    static let connection = "connection.id"
    static let address = "connection.address"
    static let client = "client.id"
    static let cleanSession = "session.clean"
    static let sessionPresent = "session.present"
    static let reason = "reason"
    static let statement = "mqtt.statement"
    static let explanation = "mqtt.violation"
    static let tlsFailure = "tls.failure"
    static let setting = "setting"
    static let user = "user.name"
    static let topic = "topic"
    static let rule = "acl.line"
    static let suppressed = "log.suppressed"
    static let listener = "listener.address"
    static let error = "error"
}
