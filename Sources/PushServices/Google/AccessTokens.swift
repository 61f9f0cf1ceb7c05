import PlainText
import RequestText

/// The access token of a service account: asked for while notifications wait, and renewed ahead of its
/// end (RFC 6749, section 5).
///
/// Owned by one thread. Times are milliseconds of the monotonic clock.
struct AccessTokens {
    /// A token is renewed so long before its end, or in the last quarter of a short life.
    private static let renewedAhead: UInt64 = 300_000
    /// A token is not sent with any more so long before its end.
    private static let margin: UInt64 = 5_000
    /// The longest life that is believed, and the shortest for which a token is of use.
    private static let longestLife: UInt64 = 86_400
    private static let shortestLife: UInt64 = 20
    /// A token that is refused and is younger is not what is wrong.
    private static let youth: UInt64 = 60_000
    private static let firstPause: UInt64 = 1_000
    private static let longestPause: UInt64 = 60_000
    /// The most bytes of a token (Google's have at most 2,048), and of a word that is believed.
    private static let mostTokenBytes = 4_096
    private static let mostWordBytes = 64

    private static let lifeName: ForeignText = "expires_in"

    private struct Token {
        let text: String
        let number: Int64
        let since: UInt64
        let renewed: UInt64
        let end: UInt64
    }

    private var token: Token?
    private var lastNumber: Int64 = 0
    private var failures: UInt64 = 0
    private var nextTry: UInt64 = 0
    /// Counts the accounts; and that for which a token was last asked for.
    private var account: UInt64 = 0
    private var askedAccount: UInt64 = 0
    /// Why the last request brought no token; `nil` after one that did.
    private(set) var failure: String?

    /// The token for requests now, with its number; `nil` without one.
    func current(at now: UInt64) -> (text: String, number: Int64)? {
        guard let token, now + Self.margin < token.end else { return nil }
        return (token.text, token.number)
    }

    /// True when a token is to be asked for.
    func isDue(at now: UInt64) -> Bool {
        now >= nextTry && (token.map { now >= $0.renewed } ?? true)
    }

    /// Notes that a token is asked for. One request is under way at a time.
    mutating func asked() { askedAccount = account }

    /// Takes the answer of the token service; one for an account that was replaced meanwhile is of no
    /// use.
    mutating func answered(
        _ status: Int, _ body: [UInt8], retryAfter: UInt64?, at now: UInt64
    ) {
        guard askedAccount == account else { return }
        var members: [JSONMember] = []
        if case .object(let read)? = try? JSONParser.parse(body) { members = read }
        func text(_ name: ForeignText) -> String? {
            guard case .string(let text)? = members.first(where: { $0.name == name })?.value else {
                return nil
            }
            return text.string
        }
        guard status == 200 else {
            let word = text("error").flatMap { Self.isWord($0) ? $0 : nil } ?? "status \(status)"
            let detail = text("error_description").map { ": \($0.visible(limit: 120))" } ?? ""
            return failed("\(word)\(detail)", pause: retryAfter, at: now)
        }
        guard let word = text("access_token"), (1...Self.mostTokenBytes).contains(word.utf8.count),
            word.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            case .number(let lifeText)? = members.first(where: { $0.name == Self.lifeName })?.value,
            let life = UInt64(lifeText), life >= Self.shortestLife
        else {
            return failed("its answer has no token that can be used", pause: nil, at: now)
        }
        let length = 1_000 * min(life, Self.longestLife)
        lastNumber += 1
        token = Token(
            text: word, number: lastNumber, since: now,
            renewed: now + length - min(Self.renewedAhead, length / 4), end: now + length)
        (failures, nextTry, failure) = (0, now, nil)
    }

    /// The request got no answer.
    mutating func lost(at now: UInt64) {
        guard askedAccount == account else { return }
        failed("no answer", pause: nil, at: now)
    }

    private mutating func failed(_ reason: String, pause: UInt64?, at now: UInt64) {
        let grown = min(Self.firstPause << min(failures, 8), Self.longestPause)
        failures += 1
        nextTry = now + max(grown, min(pause ?? 0, Self.longestPause))
        failure = reason
    }

    /// Notes that the token of this number was refused: true when a notification that went with it is
    /// to be sent again, with another one.
    mutating func refused(_ number: Int64, at now: UInt64) -> Bool {
        guard let token, token.number == number else { return true }
        // A new one would be refused as well.
        guard now >= token.since + Self.youth else { return false }
        self.token = nil
        return true
    }

    /// Forgets the token and its failures, because the account has changed.
    mutating func reset() {
        let (number, asked, next) = (lastNumber, askedAccount, account + 1)
        self = AccessTokens()
        (lastNumber, askedAccount, account) = (number, asked, next)
    }

    private static func isWord(_ text: String) -> Bool {
        (1...mostWordBytes).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x30...0x7A).contains($0) }
    }
}
