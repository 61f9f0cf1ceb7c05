/// What a device token is for. An app that takes calls, talks or Live Activities has a further token for
/// each, which it registers under its bundle identifier with Apple's suffix (`apns-topic`).
public enum AppService: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// Notifications that the system shows, and silent ones.
    case usual
    /// Calls (PushKit).
    case voip
    /// Push to Talk.
    case pushToTalk
    /// One Live Activity, or the start of one.
    case liveActivity

    /// The suffix of the topic; empty for ``usual``.
    public var suffix: String {
        switch self {
        case .usual: ""
        case .voip: ".voip"
        case .pushToTalk: ".voip-ptt"
        case .liveActivity: ".push-type.liveactivity"
        }
    }

    /// Reads it from a device's bundle; only Apple has a token for each.
    public init(of bundle: some Collection<UInt8>, for kind: Device.Kind) {
        let special: [AppService] = [.voip, .pushToTalk, .liveActivity]
        let found = special.first {
            bundle.count > $0.suffix.utf8.count
                && bundle.suffix($0.suffix.utf8.count).elementsEqual($0.suffix.utf8)
        }
        self = kind == .apns ? found ?? .usual : .usual
    }

    /// True when a device of a kind with such a token is woken by notifications of this form.
    public func takes(_ wake: WakeKind, for kind: Device.Kind) -> Bool {
        switch (kind, wake) {
        case (.webhook, _): true
        case (.fcm, .liveActivity): false
        case (.fcm, _): true
        case (.apns, .alert), (.apns, .background), (.apns, .badge): self == .usual
        case (.apns, .voip): self == .voip
        case (.apns, .pushToTalk): self == .pushToTalk
        case (.apns, .liveActivity): self == .liveActivity
        }
    }

    /// The form of a notification that an operator tries; `nil` when only the app's own content makes
    /// sense.
    public var trial: WakeKind? {
        switch self {
        case .usual: .alert
        case .voip: .voip
        case .pushToTalk: .pushToTalk
        case .liveActivity: nil
        }
    }
}
