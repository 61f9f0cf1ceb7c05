/// Why a persistent session was removed.
public enum SessionEnd: Sendable {
    /// The client stayed away for longer than `limits.session_expiry`.
    case expired
    /// An operator ended it.
    case byOperator
    /// The client connected with a clean session [MQTT-3.1.2-6].
    case clean

    public var name: String {
        switch self {
        case .expired: "session_expiry"
        case .byOperator: "operator"
        case .clean: "clean_session"
        }
    }
}
