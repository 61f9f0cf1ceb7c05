import SystemFiles

/// The provider token in use: made anew after 50 minutes, and never twice within 20 (Apple refuses
/// older than an hour and more often than that; both count for a team, over restarts).
///
/// Owned by one thread. Times are UNIX seconds.
struct ProviderTokens {
    private static let renewedAfter: Int64 = 50 * 60
    static let leastAge: Int64 = 20 * 60

    private var key: ProviderKey
    private let keyID: String
    private let teamID: String
    private let file: String
    private var token = ""
    private(set) var issuedAt: Int64 = 0
    /// False when the token was made with another key than is in use now.
    private var isOfKey = true

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
        (token, self.issuedAt) = (String(words[3]), issuedAt)
    }

    /// Takes a key that was read anew. A different one needs a new token.
    mutating func use(_ key: ProviderKey) {
        if !key.equals(self.key) { isOfKey = false }
        self.key = key
    }

    /// The token for a request now; `nil` when none can be made yet.
    mutating func current(now: Int64) -> String? {
        let age = now - issuedAt
        if !token.isEmpty, isOfKey, age >= 0, age < Self.renewedAfter { return token }
        return renew(now: now) ? token : nil
    }

    /// Makes a new token, because the service says that the present one is too old; false when it
    /// is too young for that.
    mutating func renew(now: Int64) -> Bool {
        let age = now - issuedAt
        guard token.isEmpty || !isOfKey || age < 0 || age >= Self.leastAge,
            let made = key.token(keyID: keyID, teamID: teamID, issuedAt: now)
        else { return false }
        (token, issuedAt, isOfKey) = (made, now, true)
        // Without the file a restart makes a further token, which Apple takes now and then.
        try? FileChange.replace(file, with: Array("\(keyID) \(teamID) \(now) \(made)".utf8))
        return true
    }
}
