import TimeZones

/// The form of a notification.
public enum WakeKind: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// A notification that the user sees.
    case alert = 1
    /// A silent one, which Apple throttles and which does not start an app that its user ended.
    case background = 2
    /// Takes the number off the app's icon, since nothing waits any more. No rule names it.
    case badge = 3
    /// New content of a Live Activity.
    case liveActivity = 4
    /// A call, for which the system starts the app (PushKit).
    case voip = 5
    /// Somebody talks (Push to Talk).
    case pushToTalk = 6
}

extension WakeKind {
    /// True for what is over when it comes late.
    public var isCall: Bool { self == .voip || self == .pushToTalk }

    /// True for what the user of a phone neither sees nor hears when it comes.
    public var isSilent: Bool {
        switch self {
        case .background, .badge, .liveActivity: true
        case .alert, .voip, .pushToTalk: false
        }
    }

    /// The word for it in rules and documents.
    public var name: String {
        switch self {
        case .alert: "alert"
        case .background: "background"
        case .badge: "badge"
        case .liveActivity: "liveactivity"
        case .voip: "voip"
        case .pushToTalk: "pushtotalk"
        }
    }
}

/// A rule of the configuration: messages on topics of its filter wake the phones for which they
/// wait.
public struct WakeRule: Sendable, Equatable {
    /// The most rules.
    public static let most = 64

    /// A topic filter.
    public var filter: String
    /// `nil`: such messages wake nobody.
    public var kind: WakeKind?
    /// Keys of texts in the app (`title-loc-key`, `loc-key`), which iOS shows in the user's
    /// language; the body's text may use the number of messages and the topic. Without them the
    /// notification has the count alone. A name in braces stands for a field of the payload.
    public var titleKey: String?
    public var subtitleKey: String?
    public var bodyKey: String?
    /// Names of top-level fields of a JSON payload, or of an order's status, whose values are further
    /// arguments of these texts, after the number of messages and the topic.
    public var arguments: [String] = []
    /// The name of a sound, such as `default`.
    public var sound: String?
    /// True shows the number of waiting messages on the app's icon.
    public var badge: Bool
    /// Names of such fields that go into the notification.
    public var fields: [String]
    /// True has the app's service extension change the notification before it is shown.
    public var isMutable = false
    /// Notifications of one thread are shown together.
    public var thread: Thread?
    /// The app's category, which gives the notification its buttons.
    public var category: String?
    public var level: Level?
    /// The app's notification channel, on Android.
    public var channel: String?
    /// `apns-priority`; `nil` is 10 for an alert, 5 for a silent notification.
    public var priority: UInt8?
    /// Seconds for which the notification is of use; `nil` as long as the message, at most a day.
    public var expiresInSeconds: Int64?

    /// True for a Live Activity that ends with this content.
    public var endsActivity = false
    /// What quiet hours mean for an alert.
    public var quiet = Quiet.usual
    /// True when it is told although its device has had as many as `wakes.cap` allows.
    public var isUncapped = false

    /// Quiet hours of one rule.
    public enum Quiet: Sendable, Equatable {
        /// The hours of all rules; what comes meanwhile is held until they end.
        case usual
        /// None.
        case off
        /// Hours of its own (`nil`: those of all rules), and whether what comes meanwhile is dropped.
        case hours(QuietHours?, drops: Bool)
    }

    /// True when the notification has something of the message's payload.
    public var readsPayload: Bool {
        !fields.isEmpty || !arguments.isEmpty
            || [titleKey, subtitleKey, bodyKey].contains { $0?.utf8.contains(0x7B) ?? false }
    }

    public enum Thread: Sendable, Equatable {
        /// The topic of the message.
        case topic
        case name(String)

        public static func == (left: Thread, right: Thread) -> Bool {
            switch (left, right) {
            case (.topic, .topic): true
            case (.name(let one), .name(let other)): one.utf8.elementsEqual(other.utf8)
            case (.topic, .name), (.name, .topic): false
            }
        }
    }

    /// How much a notification may disturb.
    public enum Level: String, Sendable, CaseIterable {
        case passive, active
        case timeSensitive = "time-sensitive"
        case critical
    }

    public init(
        filter: String, kind: WakeKind?, titleKey: String? = nil, bodyKey: String? = nil,
        sound: String? = nil, badge: Bool = false, fields: [String] = []
    ) {
        self.filter = filter
        self.kind = kind
        self.titleKey = titleKey
        self.bodyKey = bodyKey
        self.sound = sound
        self.badge = badge
        self.fields = fields
    }
}
