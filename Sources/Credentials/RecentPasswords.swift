import CArgon2

/// What a right password leaves behind: 32 bytes that only the holder of the key can compute.
///
/// It is Argon2id over 64 KiB, with a random key as its salt: worth nothing outside the process that made
/// the key, and some hundred times cheaper than the hash of a password file.
struct PasswordTag: Sendable {
    /// Made anew in every process, and never written anywhere.
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

    /// `nil` when the memory for it cannot be had.
    init?(_ password: [UInt8], _ key: Key) {
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        let code = argon2id_hash_raw(
            1, Self.memoryKiB, 1, password, password.count, key.bytes, key.bytes.count, &bytes,
            bytes.count)
        guard code == ARGON2_OK.rawValue else { return nil }
        self.bytes = bytes
    }

    /// Takes the same time wherever two tags differ.
    func isSame(as other: PasswordTag) -> Bool {
        zip(bytes, other.bytes).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// Passwords that were found right a short while ago, the last one of each user.
///
/// A success is not prolonged by being used: within ``lifetimeMilliseconds`` every password is checked in
/// full again.
struct RecentPasswords: Sendable {
    /// After so long a success counts no longer, and after half of it perhaps.
    static let lifetimeMilliseconds: UInt64 = 60 * 60 * 1_000
    /// Users that are remembered, at most twice as many for a moment: some 10 MB.
    static let capacity = 32_768

    private let capacity: Int
    private var recent: [[UInt8]: PasswordTag] = [:]
    /// What was `recent` before; dropped whole, so that nothing has to be looked through.
    private var older: [[UInt8]: PasswordTag] = [:]
    private var turnsAtMilliseconds: UInt64?

    init(capacity: Int = Self.capacity) { self.capacity = capacity }

    /// True when the password with this tag was the user's.
    mutating func contains(
        _ tag: PasswordTag, of userName: [UInt8], atMilliseconds now: UInt64
    ) -> Bool {
        turn(now)
        guard let known = recent[userName] ?? older[userName] else { return false }
        return known.isSame(as: tag)
    }

    /// Remembers that a full check found it right.
    mutating func insert(_ tag: PasswordTag, of userName: [UInt8], atMilliseconds now: UInt64) {
        turn(now)
        if recent.count >= capacity {
            older = recent
            recent = [:]
        }
        recent[userName] = tag
    }

    /// Forgets everything: the users have changed.
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
        // After a long silence both are too old.
        older = now - due < half ? recent : [:]
        recent = [:]
        turnsAtMilliseconds = now + half
    }
}
