/// Metadata keys of the admin plane's log lines.
enum LogKeys {
    static let peer = "admin.peer"
    static let durationMicroseconds = "http.duration_us"
    static let hint = "hint"
    static let limit = "admin.limit"
    static let messages = "admin.messages"
    static let method = "http.method"
    static let path = "http.path"
    static let problem = "http.problem"
    static let reason = "admin.reason"
    static let scope = "admin.scope"
    static let setting = "setting"
    static let retryAfter = "admin.retry_after_s"
    static let status = "http.status"
    static let suppressed = "log.suppressed"
    /// Not only of this line's address.
    static let suppressedOfAll = "log.suppressed_of_all"
    static let token = "admin.token_name"
}
