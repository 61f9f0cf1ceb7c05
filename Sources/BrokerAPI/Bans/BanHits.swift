import Synchronization

/// How often each ban has refused somebody since the broker's start. The tables that follow one
/// another share it; the data plane counts, and the HTTP API reads.
public final class BanHits: Sendable {
    /// The refusals of one ban.
    public struct Count: Sendable, Equatable {
        /// CONNECTs, or connections from a banned address.
        public internal(set) var refused = 0
        /// UNIX time in milliseconds of the latest; `nil` before the first.
        public internal(set) var lastMs: Int64?

        public init() {}
    }

    /// As many as there are bans at most, which their file bounds.
    private let counts = Mutex<[Ban.ID: Count]>([:])

    public init() {}

    public subscript(_ id: Ban.ID) -> Count { counts.withLock { $0[id] ?? Count() } }

    /// Counts a refusal at a UNIX time in milliseconds.
    public func note(_ id: Ban.ID, atMs now: Int64) {
        counts.withLock {
            $0[id, default: Count()].refused += 1
            $0[id]?.lastMs = now
        }
    }

    /// Forgets the bans that are no more.
    public func keep(_ bans: [Ban]) {
        let ids = Set(bans.map(\.id))
        counts.withLock { counts in counts = counts.filter { ids.contains($0.key) } }
    }
}
