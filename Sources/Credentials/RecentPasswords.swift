import CArgon2

/// A tag of a right password: 32 bytes that only the holder of the key can compute.
///
/// It is Argon2id over 64 KiB, with a random key as its salt: worth nothing outside the process
/// that made the key, and some hundred times cheaper than the hash of a password file.
struct PasswordTag: Sendable {
    /// New in every process, and never written anywhere.
    struct Key: Sendable {
        fileprivate let bytes: [UInt8]

        init() {
            var generator = SystemRandomNumberGenerator()
            bytes = (0..<PasswordTag.byteCount).map { _ in
                UInt8.random(in: .min ... .max, using: &generator)
            }
        }
    }

    private static let memoryKiB: UInt32 = 64
    private static let byteCount = 32

    private let bytes: [UInt8]

    /// `nil` without enough memory for it.
    init?(_ password: [UInt8], _ key: Key) {
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        let code = argon2id_hash_raw(
            1, Self.memoryKiB, 1, password, password.count, key.bytes, key.bytes.count, &bytes,
            bytes.count)
        guard code == ARGON2_OK.rawValue else { return nil }
        self.bytes = bytes
    }

    /// Compares in constant time.
    func isSame(as other: PasswordTag) -> Bool {
        zip(bytes, other.bytes).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// The passwords that full checks have lately found right, the last one of each user.
///
/// Use does not prolong a success: within ``lifetimeMilliseconds`` every password is checked in
/// full again.
struct RecentPasswords: Sendable {
    /// The longest time for which a success counts; the shortest is half of it.
    static let lifetimeMilliseconds: UInt64 = 60 * 60 * 1_000
    /// The most users that are remembered, at times up to twice as many: some 10 MB.
    static let capacity = 32_768

    private let capacity: Int
    private var recent: [[UInt8]: PasswordTag] = [:]
    /// The former ``recent``. It is dropped whole, so that no entry has to be searched for.
    private var older: [[UInt8]: PasswordTag] = [:]
    private var turnsAtMilliseconds: UInt64?

    init(capacity: Int = Self.capacity) { self.capacity = capacity }

    /// True if a full check found the password with this tag right.
    mutating func contains(
        _ tag: PasswordTag, of userName: [UInt8], atMilliseconds now: UInt64
    ) -> Bool {
        turn(now)
        guard let known = recent[userName] ?? older[userName] else { return false }
        return known.isSame(as: tag)
    }

    /// Remembers that a full check found the password right.
    mutating func insert(_ tag: PasswordTag, of userName: [UInt8], atMilliseconds now: UInt64) {
        turn(now)
        if recent.count >= capacity {
            older = recent
            recent = [:]
        }
        recent[userName] = tag
    }

    /// Forgets everything, because the users have changed.
    mutating func removeAll() {
        recent = [:]
        older = [:]
    }

    private mutating func turn(_ now: UInt64) {
        let half = Self.lifetimeMilliseconds / 2
        guard let due = turnsAtMilliseconds else {
            turnsAtMilliseconds = now + half
            return
        }
        guard now >= due else { return }
        // After a long pause both generations are too old.
        older = now - due < half ? recent : [:]
        recent = [:]
        turnsAtMilliseconds = now + half
    }
}
