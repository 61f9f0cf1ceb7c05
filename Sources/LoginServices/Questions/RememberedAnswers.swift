import Credentials
import Logins

/// Answers of the service by the digest of their questions, within a bound in bytes. No entry is
/// searched for to be dropped: of two generations the older one goes as a whole.
struct RememberedAnswers {
    typealias Time = ContinuousClock.Instant

    private struct Entry {
        let answer: ServiceAnswer
        let until: Time
    }

    /// The most bytes of one of the two generations.
    private let halfBytes: Int
    private var recent: [SHA256Digest: Entry] = [:]
    private var older: [SHA256Digest: Entry] = [:]
    private var recentBytes = 0

    /// A table's slot with its digest and answer, and the space that tables leave free.
    private static let bytesOfEntry = 256

    init(mostBytes: Int) { halfBytes = mostBytes / 2 }

    /// Without an entry, within the same bound.
    func emptied() -> RememberedAnswers { RememberedAnswers(mostBytes: 2 * halfBytes) }

    var count: Int { recent.count + older.count }

    /// The answer that is not out of date, or is so for less than `grace`. `now` is UNIX time in
    /// seconds by the wall clock, by which logins end.
    mutating func find(
        _ digest: SHA256Digest, at time: Time, grace: Duration = .zero, wallClock now: Int64
    ) -> ServiceAnswer? {
        let found = recent[digest] ?? older[digest]
        guard let found, time < found.until.advanced(by: grace) else { return nil }
        if case .allowed(let login) = found.answer, let end = login.expiresAt, end <= now {
            return nil
        }
        // Use keeps it.
        if recent[digest] == nil { insert(found, digest) }
        return found.answer
    }

    mutating func insert(_ answer: ServiceAnswer, _ digest: SHA256Digest, until: Time) {
        insert(Entry(answer: answer, until: until), digest)
    }

    mutating func remove(_ digest: SHA256Digest) {
        if let former = recent.removeValue(forKey: digest) {
            recentBytes -= Self.bytes(of: former.answer)
        }
        older[digest] = nil
    }

    private mutating func insert(_ entry: Entry, _ digest: SHA256Digest) {
        remove(digest)
        let bytes = Self.bytes(of: entry.answer)
        guard bytes <= halfBytes else { return }
        if recentBytes + bytes > halfBytes {
            older = recent
            recent = [:]
            recentBytes = 0
        }
        recent[digest] = entry
        recentBytes += bytes
    }

    private static func bytes(of answer: ServiceAnswer) -> Int {
        switch answer {
        case .allowed(let login):
            bytesOfEntry + (login.userName?.utf8.count ?? 0) + (login.allowance?.byteCount ?? 0)
        case .denied(let reason): bytesOfEntry + (reason?.utf8.count ?? 0)
        case .ignored, .ended: bytesOfEntry
        }
    }
}
