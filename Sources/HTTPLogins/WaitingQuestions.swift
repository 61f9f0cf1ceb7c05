import Credentials

/// Questions that wait for a request, by their digests. The addresses of their clients take turns;
/// when the queue is full, the address with the most questions loses one. So a storm from one
/// address delays others by little.
///
/// Origin 0, for clients without an address of their own, never loses a question.
struct WaitingQuestions {
    /// The most questions that wait.
    var capacity: Int

    /// Questions by origin, oldest first; no list is empty.
    private var lines: [UInt32: [SHA256Digest]] = [:]
    /// Origins in the order of service, each once.
    private var turns: [UInt32] = []
    private(set) var count = 0

    init(capacity: Int) { self.capacity = capacity }

    /// Adds a question; returns the one that must leave, if any, which may be another.
    mutating func append(_ digest: SHA256Digest, origin: UInt32) -> SHA256Digest? {
        guard count >= capacity else {
            place(digest, origin)
            return nil
        }
        let own = lines[origin]?.count ?? 0
        let others = lines.lazy.filter { $0.key != 0 }
        guard let longest = others.max(by: { $0.value.count < $1.value.count }),
            longest.value.count > own + 1, let displaced = lines[longest.key]?.popLast()
        else { return digest }
        count -= 1
        place(digest, origin)
        return displaced
    }

    /// Takes the oldest question of the next origin; `nil` when none waits.
    mutating func removeFirst() -> SHA256Digest? {
        guard !turns.isEmpty else { return nil }
        let origin = turns.removeFirst()
        guard var line = lines.removeValue(forKey: origin) else {
            preconditionFailure("origin \(origin) has a turn and no question")
        }
        let digest = line.removeFirst()
        count -= 1
        if !line.isEmpty {
            lines[origin] = line
            turns.append(origin)
        }
        return digest
    }

    private mutating func place(_ digest: SHA256Digest, _ origin: UInt32) {
        if lines[origin] == nil { turns.append(origin) }
        lines[origin, default: []].append(digest)
        count += 1
    }
}
