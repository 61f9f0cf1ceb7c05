import PlainText
import RequestText

/// What Google answered to one message: a status, and for all but 200 an error with a code of Firebase
/// Cloud Messaging ("ErrorCode", Firebase Cloud Messaging REST reference).
package struct GoogleAnswer: Equatable, Sendable {
    package let status: Int
    /// The code of Firebase Cloud Messaging, such as `UNREGISTERED`, or else that of Google's services,
    /// such as `PERMISSION_DENIED`; empty for none.
    package let code: String
    /// True when the code is of Firebase Cloud Messaging.
    package let isOfMessaging: Bool
    /// True when the error is about a field of the request other than the device token.
    package let isAboutOtherField: Bool

    /// The most bytes of a code that are believed.
    private static let mostCodeBytes = 64
    private static let messagingType: ForeignText =
        "type.googleapis.com/google.firebase.fcm.v1.FcmError"
    private static let requestType: ForeignText = "type.googleapis.com/google.rpc.BadRequest"

    private static let tokenField: ForeignText = "message.token"

    /// Reads an answer, whose body may have been cut.
    package init(status: Int, body: [UInt8]) {
        self.status = status
        var (general, own, isAboutOtherField) = ("", "", false)
        if status != 200, case .object(let members)? = try? JSONParser.parse(body),
            case .object(let error)? = Self.member("error", members)
        {
            if case .string(let text)? = Self.member("status", error) { general = text.string }
            if case .array(let details)? = Self.member("details", error) {
                for case .object(let detail) in details {
                    guard case .string(let type)? = Self.member("@type", detail) else { continue }
                    if type == Self.messagingType,
                        case .string(let text)? = Self.member("errorCode", detail)
                    {
                        own = text.string
                    } else if type == Self.requestType {
                        isAboutOtherField = isAboutOtherField || Self.namesOtherField(detail)
                    }
                }
            }
        }
        isOfMessaging = Self.isCode(own)
        code = isOfMessaging ? own : Self.isCode(general) ? general : ""
        self.isAboutOtherField = isAboutOtherField
    }

    private static func member(_ name: ForeignText, _ members: [JSONMember]) -> JSONValue? {
        members.first { $0.name == name }?.value
    }

    private static func namesOtherField(_ detail: [JSONMember]) -> Bool {
        guard case .array(let violations)? = member("fieldViolations", detail) else { return false }
        return violations.contains { violation in
            guard case .object(let members) = violation,
                case .string(let field)? = member("field", members)
            else { return false }
            return field != tokenField
        }
    }

    private static func isCode(_ text: String) -> Bool {
        (1...mostCodeBytes).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x41...0x5A).contains($0) || $0 == 0x5F }
    }

    var meaning: AnswerMeaning {
        switch (status, code) {
        case (200, _): .accepted
        case (404, "UNREGISTERED"): .gone(atMs: nil)
        // What the broker sends has been checked, so it is the token, unless Google names something else.
        case (400, "INVALID_ARGUMENT"): isAboutOtherField ? .refused : .unknownDevice
        case (403, "SENDER_ID_MISMATCH"): .unfitKey
        case (401, "THIRD_PARTY_AUTH_ERROR"): .topic
        case (401, _): .expiredToken
        case (403, _), (404, _): .credentials
        case (429, _): .busyService
        case (500..., _): .service
        case (300..., _): .refused
        default: .service
        }
    }

    /// Google's code, or the status.
    package var word: String { code.isEmpty && status != 200 ? "status \(status)" : code }
}

extension ProviderAnswer {
    /// `retryAfter` is the pause in milliseconds that Google asks for.
    init(_ answer: GoogleAnswer, retryAfter: UInt64?) {
        // A service that says how long it is overloaded is left alone for that time.
        let isPause = answer.meaning == .service && retryAfter != nil
        self.init(
            status: answer.status, word: answer.word,
            meaning: isPause ? .busyService : answer.meaning, pause: retryAfter)
    }
}
