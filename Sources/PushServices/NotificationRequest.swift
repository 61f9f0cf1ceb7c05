import BrokerAPI

/// A notification for a push service, whose payload is ready; the headers are Apple's.
package struct NotificationRequest: Sendable {
    /// The most bytes of a payload that Apple takes.
    package static let mostPayloadBytes = 4_096

    /// Names the request in its answer.
    package var handOut: HandOut
    /// Attempts of the same wake before, which Apple has answered or not.
    package var attempt = 0
    /// 10, 5 or 1; `nil` is what the kind usually has.
    package var priority: UInt8?
    /// The bytes of the device token as the app registered it.
    package var token: [UInt8]
    package var environment: Device.Environment
    /// The bundle identifier of the app.
    package var topic: String
    package var kind: WakeKind
    /// UNIX time in seconds until which Apple keeps the notification.
    package var expiration: Int64
    /// At most 64 bytes.
    package var collapseID: String
    /// The bits of `apns-id`, the same in each attempt.
    package var notificationID: (high: UInt64, low: UInt64)
    /// A JSON object: for Apple of at most ``mostPayloadBytes``, for Google the whole body.
    package var payload: [UInt8]

    package init(
        handOut: HandOut, token: [UInt8], environment: Device.Environment, topic: String,
        kind: WakeKind, expiration: Int64, collapseID: String,
        notificationID: (high: UInt64, low: UInt64), payload: [UInt8]
    ) {
        self.handOut = handOut
        self.token = token
        self.environment = environment
        self.topic = topic
        self.kind = kind
        self.expiration = expiration
        self.collapseID = collapseID
        self.notificationID = notificationID
        self.payload = payload
    }

    /// 10 for what the user sees; 5 for a silent notification, for which Apple refuses 10.
    var priorityText: String {
        switch kind {
        case .alert, .liveActivity, .voip, .pushToTalk: "\(priority ?? 10)"
        case .background, .badge: "\(priority ?? 5)"
        }
    }

    /// Whatever changes something that the user sees is an alert to Apple, a badge too.
    var pushType: String {
        switch kind {
        case .alert, .badge: "alert"
        case .background: "background"
        case .liveActivity: "liveactivity"
        case .voip: "voip"
        case .pushToTalk: "pushtotalk"
        }
    }

    /// True when a later notification takes the place of this one: no call does.
    var collapses: Bool {
        switch kind {
        case .alert, .background, .badge: true
        case .liveActivity, .voip, .pushToTalk: false
        }
    }
}
