import SystemFiles

/// The provider token in use: made anew after 50 minutes, and never twice within 20 (Apple refuses
/// older than an hour and more often than that; both count for a team, over restarts).
///
/// Owned by one thread. Times are UNIX seconds.
struct ProviderTokens {
    private static let renewedAfter: Int64 = 50 * 60
    static let leastAge: Int64 = 20 * 60
    /// Apple takes no older ones.
    private static let longestLife: Int64 = 59 * 60

    private struct Made {
        let text: String
        let issuedAt: Int64
        /// False when it was made with another key than is in use now.
        var isOfKey = true
        /// True once Apple has taken a notification with it.
        var isGood = false
        /// True once Apple has refused it.
        var isRefused = false
    }

    private var key: ProviderKey
    private let keyID: String
    private let teamID: String
    private let file: String
    private var token: Made?
    /// The last token that Apple took, while a newer one is in use.
    private var former: Made?
    /// No new token before this time, since Apple has had too many.
    private var notBefore: Int64 = 0

    /// The time of the token in use; 0 without one.
    var issuedAt: Int64 { token?.issuedAt ?? 0 }

    /// Takes the stored token over if it is of this key and may still be used.
    init(key: ProviderKey, keyID: String, teamID: String, file: String, now: Int64) {
        self.key = key
        self.keyID = keyID
        self.teamID = teamID
        self.file = file
        guard let stored = try? WholeFile(file, maximumByteCount: 4_096, isSecret: true),
            stored.status.isOurs, stored.status.modeOfOthers == 0
        else { return }
        let words = String(decoding: stored.bytes, as: UTF8.self).split(
            separator: " ", omittingEmptySubsequences: false)
        guard words.count == 4, words[0] == keyID, words[1] == teamID,
            let issuedAt = Int64(words[2]), issuedAt <= now, now - issuedAt < Self.renewedAfter,
            words[3].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return }
        token = Made(text: String(words[3]), issuedAt: issuedAt)
    }

    /// Takes a key that was read anew. With a different one a new token is made: at once if Apple
    /// has not taken the present one, else as soon as Apple allows that.
    mutating func use(_ key: ProviderKey) {
        if !key.equals(self.key) { token?.isOfKey = false }
        self.key = key
    }

    /// The token for a request now; `nil` when none can be made.
    mutating func current(now: Int64) -> String? {
        guard let token else { return make(now: now) ? self.token?.text : nil }
        let age = now - token.issuedAt
        let isDue =
            if age < 0 || token.isRefused {
                true
            } else if token.isOfKey {
                age >= Self.renewedAfter
            } else {
                !token.isGood || age >= Self.leastAge
            }
        guard isDue, !make(now: now) else { return self.token?.text }
        return (0..<Self.longestLife).contains(age) ? token.text : nil
    }

    /// Notes that Apple has taken a notification with the token of this time.
    mutating func accepted(_ issuedAt: Int64) {
        guard token?.issuedAt == issuedAt else { return }
        token?.isGood = true
        former = nil
    }

    /// Notes that Apple does not take the token of this time: true when a notification that went with
    /// it is to be sent again, with another one.
    mutating func refused(_ issuedAt: Int64, now: Int64) -> Bool {
        guard let token, token.issuedAt == issuedAt else { return true }
        // One device may be refused with a token that is good for others.
        guard !token.isOfKey else { return false }
        self.token?.isRefused = true
        return make(now: now)
    }

    /// Notes that the token of this time is too old for Apple: true as for ``refused(_:now:)``.
    mutating func expired(_ issuedAt: Int64, now: Int64) -> Bool {
        guard let token, token.issuedAt == issuedAt else { return true }
        let age = now - issuedAt
        return (age < 0 || age >= Self.leastAge) && make(now: now)
    }

    /// Notes that Apple has had too many new tokens, of which the one of this time is the last: true
    /// when the one before it is still good, and goes on.
    mutating func tooMany(_ issuedAt: Int64, now: Int64) -> Bool {
        guard let token, token.issuedAt == issuedAt else { return true }
        guard var former, now - former.issuedAt < Self.longestLife else { return false }
        // The key in use may be another one than that of the former token.
        former.isOfKey = former.isOfKey && token.isOfKey
        self.token = former
        self.former = nil
        notBefore = min(now + Self.leastAge, former.issuedAt + Self.longestLife)
        store(former)
        return true
    }

    /// Makes a new token; false when OpenSSL cannot.
    private mutating func make(now: Int64) -> Bool {
        guard now >= notBefore, let text = key.token(keyID: keyID, teamID: teamID, issuedAt: now)
        else { return false }
        if let token, !token.isRefused { former = token }
        let made = Made(text: text, issuedAt: now)
        token = made
        store(made)
        return true
    }

    /// Without the file a restart makes a further token, which Apple takes now and then.
    private func store(_ token: Made) {
        try? FileChange.replace(
            file, with: Array("\(keyID) \(teamID) \(token.issuedAt) \(token.text)".utf8))
    }
}
