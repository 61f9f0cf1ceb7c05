import Authorization
import PlainText
import RequestText

/// What the service says about a login.
package enum ServiceAnswer: Sendable {
    case allowed(ServiceLogin)
    /// With the service's reason, cut and without characters that act on a terminal; `nil` without
    /// one.
    case denied(reason: String?)
    /// The service lets it in until a time that is over.
    case ended
    /// The service does not know the login, and the next source is asked.
    case ignored

    /// The most bytes of an answer.
    package static let mostBytes = 64 << 10

    /// A login that has ended already lets nobody in. `wallClock` is in UNIX seconds.
    package func held(to wallClock: Int64) -> ServiceAnswer {
        if case .allowed(let login) = self, let end = login.expiresAt, end <= wallClock {
            return .ended
        }
        return self
    }
}

/// What the service gives a client that it lets in.
package struct ServiceLogin: Sendable {
    /// The user that the client is; `nil` for the one that CONNECT names.
    package var userName: String?
    /// What the client may do; `nil` leaves it to the access rules.
    package var allowance: TopicAllowance?
    /// UNIX seconds at which the connection ends; `nil` for none.
    package var expiresAt: Int64?

    /// True when it lists topics.
    package let narrows: Bool

    /// True when the access rules are not asked.
    package var isSuperuser: Bool { allowance?.overrulesAccessRules ?? false }
}

/// The reason why an answer is none, a clause; foreign text is escaped and cut.
package struct MalformedAnswer: Error, Equatable {
    package let complaint: String
}

/// An answer as it came, with the time for which the service lets it be remembered.
package struct ReceivedAnswer: Sendable {
    package var answer: ServiceAnswer
    /// `nil` when the service says nothing of it.
    package var remember: Duration?

    /// The longest user name in bytes; the broker's limit of user names counts as well.
    package static let longestUserName = 1_024
    /// The longest reason that is kept, in characters.
    package static let longestReason = 200
    private static let latestTime = 253_402_300_799.0

    package init(answer: ServiceAnswer, remember: Duration?) {
        self.answer = answer
        self.remember = remember
    }

    /// Reads a JSON object. Members that are not known are passed over; one that is known and has
    /// another type, and a name that occurs twice, make the whole answer none.
    package init(_ document: [UInt8]) throws(MalformedAnswer) {
        let value: JSONValue
        do throws(JSONSyntaxError) {
            value = try JSONParser.parse(document)
        } catch {
            throw MalformedAnswer(complaint: "the answer is no JSON: \(error)")
        }
        guard case .object(let list) = value else {
            throw MalformedAnswer(complaint: "the answer is \(value.kindName), and no object")
        }
        // The parser refuses a name that occurs twice.
        let members = Members(list)
        let result = try members.text("result")
        let seconds = try members.seconds("remember_s", most: 31_536_000)
        remember = seconds.map { .seconds($0) }
        let login = try Self.login(members)
        let reason = try members.text("reason").map { String(Self.plain($0.string)) }
        switch result {
        case "allow"?: answer = .allowed(login)
        case "deny"?: answer = .denied(reason: reason)
        case "ignore"?: answer = .ignored
        case let other?:
            throw MalformedAnswer(
                complaint: """
                    `result` is \(VisibleText.quoted(String(other.string.unicodeScalars.prefix(40)))), and neither allow, \
                    deny nor ignore
                    """)
        case nil: throw MalformedAnswer(complaint: "`result` is missing")
        }
    }

    /// A reason for one line of the log and of a terminal: cut, with blanks for hidden characters.
    private static func plain(_ text: String) -> String.UnicodeScalarView {
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(longestReason) {
            scalars.append(VisibleText.isHidden(scalar) ? " " : scalar)
        }
        return scalars
    }

    private static func login(_ members: Members) throws(MalformedAnswer) -> ServiceLogin {
        let publish = try members.texts("publish")
        let subscribe = try members.texts("subscribe")
        let isSuperuser = try members.flag("superuser") ?? false
        var login = ServiceLogin(narrows: publish != nil || subscribe != nil)
        if publish != nil || subscribe != nil || isSuperuser {
            do throws(TopicAllowance.Malformed) {
                login.allowance = try TopicAllowance(
                    publish: publish, subscribe: subscribe, overrulesAccessRules: isSuperuser)
            } catch {
                throw MalformedAnswer(complaint: "a \(error.complaint)")
            }
        }
        if let name = try members.text("user_name") {
            guard !name.isEmpty, name.utf8.count <= longestUserName,
                !name.string.unicodeScalars.contains(where: {
                    $0.value < 0x20 || 0x7F...0x9F ~= $0.value
                })
            else {
                throw MalformedAnswer(
                    complaint:
                        "`user_name` is empty, longer than \(longestUserName) bytes, or has control characters"
                )
            }
            login.userName = name.string
        }
        login.expiresAt = try members.seconds("expires_at", most: latestTime)
        return login
    }
}

/// The members of an answer by name.
private struct Members {
    private let values: [ForeignText: JSONValue]

    /// A member that is null is absent: many programs write so what they do not say.
    init(_ list: [JSONMember]) {
        let said = list.filter { $0.value != .null }
        values = Dictionary(said.map { ($0.name, $0.value) }) { first, _ in first }
    }

    func text(_ name: ForeignText) throws(MalformedAnswer) -> ForeignText? {
        guard let value = values[name] else { return nil }
        guard case .string(let text) = value else { throw wrong(name, value, "a string") }
        return text
    }

    func flag(_ name: ForeignText) throws(MalformedAnswer) -> Bool? {
        guard let value = values[name] else { return nil }
        guard case .bool(let flag) = value else { throw wrong(name, value, "true or false") }
        return flag
    }

    /// Seconds that are not negative; a fraction is cut off.
    func seconds(_ name: ForeignText, most: Double) throws(MalformedAnswer) -> Int64? {
        guard let value = values[name] else { return nil }
        guard case .number(let text) = value, let seconds = Double(text), 0...most ~= seconds else {
            throw wrong(name, value, "a number of seconds from 0 to \(Int64(most))")
        }
        return Int64(seconds)
    }

    func texts(_ name: ForeignText) throws(MalformedAnswer) -> [String]? {
        guard let value = values[name] else { return nil }
        guard case .array(let elements) = value else {
            throw wrong(name, value, "a list of topic filters")
        }
        var texts: [String] = []
        for element in elements {
            guard case .string(let text) = element else {
                throw MalformedAnswer(
                    complaint: "`\(name)` holds \(element.kindName), and no topic filter")
            }
            texts.append(text.string)
        }
        return texts
    }

    private func wrong(
        _ name: ForeignText, _ value: JSONValue, _ wanted: String
    ) -> MalformedAnswer {
        MalformedAnswer(complaint: "`\(name)` is \(value.kindName), and not \(wanted)")
    }
}
