/// The form of a notification.
public enum WakeKind: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// A notification that the user sees.
    case alert = 1
    /// A silent one, which Apple throttles and which does not start an app that its user ended.
    case background = 2
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
    /// notification has the count alone.
    public var titleKey: String?
    public var bodyKey: String?
    /// The name of a sound, such as `default`.
    public var sound: String?
    /// True shows the number of waiting messages on the app's icon.
    public var badge: Bool
    /// Names of top-level fields of a JSON payload that go into the notification.
    public var fields: [String]

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
