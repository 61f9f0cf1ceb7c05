import BrokerAPI
import PlainText
import RequestText

/// What Apple answered to one notification: a status, and for all but 200 a reason ("Handling
/// notification responses from APNs", Apple developer documentation).
package struct AppleAnswer: Equatable, Sendable {
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

    var meaning: AnswerMeaning {
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

    /// Apple's word, or the status.
    package var word: String { reason.isEmpty && status != 200 ? "status \(status)" : reason }
}

extension ProviderAnswer {
    init(_ answer: AppleAnswer) {
        self.init(status: answer.status, word: answer.word, meaning: answer.meaning)
    }
}
