import BrokerAPI
import PlainText
import RequestText

/// What Apple answered to one notification: a status, and for all but 200 a reason ("Handling
/// notification responses from APNs", Apple developer documentation).
package struct AppleAnswer: Equatable, Sendable {
    /// What the answer says of the sender, beyond the one notification.
    package enum Concern: Equatable, Sendable {
        case none
        /// The provider token is too old.
        case expiredToken
        /// Key, team or certificate are wrong: no notification passes until somebody corrects them.
        case credentials
        /// Too many new provider tokens: the connection is of no use for a while.
        case tooManyTokens
        /// The connection ends.
        case closing
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

    var concern: Concern {
        switch (status, reason) {
        case (403, "ExpiredProviderToken"): .expiredToken
        case (403, _): .credentials
        case (429, "TooManyProviderTokenUpdates"): .tooManyTokens
        case (_, "Shutdown"), (_, "IdleTimeout"): .closing
        default: .none
        }
    }

    /// True when the connection that brought it is of no further use.
    var endsConnection: Bool { concern == .tooManyTokens || concern == .closing }

    var outcome: WakeAnswer.Outcome {
        switch (status, reason) {
        case (200, _): .accepted
        case (410, _): .gone(atMs: timestampMs)
        case (400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic"): .badDevice
        case (_, "IdleTimeout"), (_, "Shutdown"): .later(milliseconds: 1_000)
        // A new token is made at once, if the one in use is old enough.
        case (403, "ExpiredProviderToken"): .later(milliseconds: 5_000)
        // The sender pauses, and asks for the wake again when it goes on.
        case (403, _), (429, "TooManyProviderTokenUpdates"): .later(milliseconds: 1_000)
        case (429, _): .later(milliseconds: 60_000)
        case (500..., _): .later(milliseconds: 5_000)
        case (300..., _): .refused
        // No final answer of HTTP.
        default: .later(milliseconds: 5_000)
        }
    }

    /// Apple's word, or the status.
    package var word: String { reason.isEmpty && status != 200 ? "status \(status)" : reason }
}
