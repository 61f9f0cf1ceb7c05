/// A wake that is owed: a notification service should tell a phone that messages wait for it.
public struct Wake: Sendable, Equatable {
    /// Names this hand-out in its answer.
    public var handOut: HandOut
    /// Earlier attempts that the service has judged, or that got no answer.
    public var attempt = 0
    public var clientID: String
    public var device: Device
    public var kind: WakeKind
    /// The rule that asks for it; `nil` for a trial and for a rule that a reload has removed.
    public var rule: WakeRule?
    /// The topic of the newest message that asks for the wake.
    public var topic: String
    /// Payload of that message, when its rule includes fields of it; empty otherwise.
    public var payload: [UInt8]
    /// Messages that ask for a wake and wait for the client now, whether it was told of them or not.
    public var waiting: Int
    /// A name for the notification that a later one of the same name replaces: a digest of the
    /// message's collapse key or its topic, in hexadecimal; at most 64 bytes.
    public var collapseID: String
    /// The same for each attempt of the same wake, across restarts: 128 bits for `apns-id`.
    public var notificationID: (high: UInt64, low: UInt64)
    /// UNIX time in seconds at which the wake is of no use.
    public var expiresAt: Int64

    public init(
        handOut: HandOut, clientID: String, device: Device, kind: WakeKind, rule: WakeRule?,
        topic: String,
        payload: [UInt8] = [], waiting: Int, collapseID: String,
        notificationID: (high: UInt64, low: UInt64), expiresAt: Int64
    ) {
        self.handOut = handOut
        self.clientID = clientID
        self.device = device
        self.kind = kind
        self.rule = rule
        self.topic = topic
        self.payload = payload
        self.waiting = waiting
        self.collapseID = collapseID
        self.notificationID = notificationID
        self.expiresAt = expiresAt
    }

    public static func == (left: Wake, right: Wake) -> Bool {
        left.handOut == right.handOut && left.attempt == right.attempt
            && left.clientID.utf8.elementsEqual(right.clientID.utf8)
            && left.device == right.device
            && left.kind == right.kind && left.rule == right.rule
            && left.topic.utf8.elementsEqual(right.topic.utf8)
            && left.payload == right.payload && left.waiting == right.waiting
            && left.collapseID == right.collapseID
            && left.notificationID == right.notificationID && left.expiresAt == right.expiresAt
    }
}

/// One hand-out of a wake to its sender. A wake that is handed out again has another number, so that a
/// late answer to the first is not taken for one to the second.
public struct HandOut: Hashable, Sendable, BitwiseCopyable {
    public var device: UInt64
    public var number: UInt32

    public init(device: UInt64, number: UInt32) {
        self.device = device
        self.number = number
    }
}

/// The end of one attempt to wake a phone, without its details.
public enum WakeResult: UInt8, CountLabel, BitwiseCopyable {
    case accepted, gone, badDevice, later, refused, givenBack

    public var name: String {
        switch self {
        case .accepted: "accepted"
        case .gone: "gone"
        case .badDevice: "bad_device"
        case .later: "later"
        case .refused: "refused"
        case .givenBack: "given_back"
        }
    }
}

/// The end of one attempt to wake a phone.
public struct WakeAnswer: Sendable, Equatable {
    public enum Outcome: Sendable, Equatable {
        /// The service has taken the notification.
        case accepted
        /// The service says that the device is gone since that time (UNIX milliseconds; `nil` when
        /// it says no time). A device that registered later stays.
        case gone(atMs: Int64?)
        /// The service refuses this device. It is set aside until it registers again.
        case badDevice
        /// Not now: the wake is owed again after that time.
        case later(milliseconds: UInt64)
        /// The service refuses this notification, and would again.
        case refused
        /// The sender gives the wake back: the service has not judged it, so this was no attempt.
        case givenBack

        public var result: WakeResult {
            switch self {
            case .accepted: .accepted
            case .gone: .gone
            case .badDevice: .badDevice
            case .later: .later
            case .refused: .refused
            case .givenBack: .givenBack
            }
        }
    }

    public var handOut: HandOut
    public var outcome: Outcome
    /// The service's own word for it, such as `Unregistered`; empty for none.
    public var reason: String

    public init(_ handOut: HandOut, _ outcome: Outcome, reason: String = "") {
        self.handOut = handOut
        self.outcome = outcome
        self.reason = reason
    }
}
