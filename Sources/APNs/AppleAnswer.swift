import BrokerAPI
import PlainText
import RequestText

/// What Apple answered to one notification: a status, and for all but 200 a reason ("Handling
/// notification responses from APNs", Apple developer documentation).
package struct AppleAnswer: Equatable, Sendable {
    /// What an answer is about. Most reasons are about one device or notification; some make key,
    /// certificate or app suspect, but one device alone may cause those too.
    enum Meaning: Equatable, Sendable {
        case accepted
        /// The token is not active since that time (UNIX milliseconds).
        case gone(atMs: Int64?)
        /// Apple does not know the token, or not for this app.
        case unknownDevice
        /// The key may not be used for this device: its environment is another one, or the device is
        /// none of ours.
        case unfitKey
        /// Key, team or certificate are wrong.
        case credentials
        /// The connection was opened with a token of another key.
        case otherKey
        /// The provider token is too old.
        case expiredToken
        /// Too many new provider tokens: the connection is of no use for a while.
        case tooManyTokens
        /// The app is not one that these credentials may send to.
        case topic
        /// Too many notifications for this device.
        case busyDevice
        /// Apple's service has a problem of its own, or gave no final answer.
        case service
        /// The connection ends, and has not taken the notification.
        case closing
        /// The notification itself is refused.
        case refused
    }

    package let status: Int
    /// Apple's word; empty for none.
    package let reason: String
    /// UNIX time in milliseconds since which the token is not active (410).
    package let timestampMs: Int64?

    /// The most bytes of a reason that are believed.
    private static let mostReasonBytes = 64

    /// Reads an answer, whose body may have been cut.
    package init(status: Int, body: [UInt8]) {
        self.status = status
        var reason = ""
        var timestamp: Int64?
        if status != 200, case .object(let members)? = try? JSONParser.parse(body) {
            for member in members {
                switch (member.name, member.value) {
                case ("reason", .string(let text)): reason = text.string
                case ("timestamp", .number(let text)): timestamp = Int64(text)
                default: continue
                }
            }
        }
        let isWord =
            reason.utf8.count <= Self.mostReasonBytes
            && reason.utf8.allSatisfy { (0x30...0x7A).contains($0) }
        self.reason = isWord ? reason : ""
        timestampMs = timestamp
    }

    var meaning: Meaning {
        switch (status, reason) {
        case (200, _): .accepted
        case (410, _): .gone(atMs: timestampMs)
        case (_, "IdleTimeout"), (_, "Shutdown"): .closing
        case (400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic"): .unknownDevice
        case (400, "BadTopic"), (400, "MissingTopic"), (400, "TopicDisallowed"): .topic
        case (403, "Forbidden"), (403, "BadEnvironmentKeyIdInToken"),
            (403, "BadEnvironmentKeyInToken"):
            .unfitKey
        case (403, "UnrelatedKeyIdInToken"): .otherKey
        case (403, "ExpiredProviderToken"): .expiredToken
        case (403, _): .credentials
        case (429, "TooManyProviderTokenUpdates"): .tooManyTokens
        case (429, _): .busyDevice
        case (500..., _): .service
        case (300..., _): .refused
        default: .service
        }
    }

    /// True when the connection that brought it takes no further notifications.
    var endsConnection: Bool {
        switch meaning {
        case .closing, .tooManyTokens, .otherKey: true
        case .accepted, .gone, .unknownDevice, .unfitKey, .credentials, .expiredToken, .topic,
            .busyDevice, .service, .refused:
            false
        }
    }

    /// Apple's word, or the status.
    package var word: String { reason.isEmpty && status != 200 ? "status \(status)" : reason }
}
