import Credentials

/// The results of tokens that were verified in full, by their SHA-256, so that a client that
/// reconnects with its token costs a hash. Within a bound in bytes; each for as long as its token
/// is valid.
struct RememberedTokens {
    /// The most bytes of one of two generations.
    private let halfBytes: Int
    private var recent: [SHA256Digest: TokenLogin] = [:]
    /// The former ``recent``. It is dropped whole, so that no entry has to be searched for.
    private var older: [SHA256Digest: TokenLogin] = [:]
    private var recentBytes = 0

    /// A table's slot with its digest, login, and the space that tables leave free.
    private static let bytesOfEntry = 192

    /// Keeps at most so many bytes, and at least half of them once there were more.
    init(mostBytes: Int) { halfBytes = mostBytes / 2 }

    /// Without an entry, within the same bound.
    func emptied() -> RememberedTokens { RememberedTokens(mostBytes: 2 * halfBytes) }

    var count: Int { recent.count + older.count }

    /// The result of a token that is still valid at this time in UNIX seconds. Use keeps it.
    mutating func find(_ digest: SHA256Digest, now: Int64) -> TokenLogin? {
        if let login = recent[digest] {
            guard Self.isValid(login, now) else {
                recentBytes -= Self.bytes(of: login)
                recent[digest] = nil
                return nil
            }
            return login
        }
        guard let login = older.removeValue(forKey: digest), Self.isValid(login, now) else {
            return nil
        }
        insert(login, digest)
        return login
    }

    mutating func insert(_ login: TokenLogin, _ digest: SHA256Digest) {
        let bytes = Self.bytes(of: login)
        if recentBytes + bytes > halfBytes {
            older = recent
            recent = [:]
            recentBytes = 0
        }
        guard bytes <= halfBytes, recent.updateValue(login, forKey: digest) == nil else { return }
        recentBytes += bytes
    }

    private static func isValid(_ login: TokenLogin, _ now: Int64) -> Bool {
        login.endsAt.map { now < $0 } ?? true
    }

    /// Its allowance is counted too, though most clients share theirs.
    private static func bytes(of login: TokenLogin) -> Int {
        bytesOfEntry + login.userName.utf8.count + (login.keyIdentifier?.utf8.count ?? 0)
            + (login.allowance?.byteCount ?? 0)
    }
}
