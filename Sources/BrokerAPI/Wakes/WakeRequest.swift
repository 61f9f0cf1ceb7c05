/// Whether a message wakes phones, as its publisher asks.
public enum WakeRequest: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// As the rules of the configuration say.
    case byRules = 0
    /// Such a notification, whatever the rules say; a rule that fits still gives it its texts.
    case alert = 1
    case background = 2
    /// It wakes nobody.
    case none = 3

    /// The word for it in requests; ``byRules`` is the absence of one.
    public var name: String {
        switch self {
        case .byRules: ""
        case .alert: "alert"
        case .background: "background"
        case .none: "none"
        }
    }

    /// The cases that a request may name.
    public static let named: [WakeRequest] = [.alert, .background, .none]
}
