import BrokerAPI
import BrokerCore
import Structures

/// The newest trouble of each client that has one, with the number of its repetitions: events between
/// them, as the connections between take-overs, end no count.
struct ClientTroubles: ~Copyable {
    struct Record: BitwiseCopyable {
        /// The client's place in ``ClientHistories``.
        let client: UInt32
        var links = ListLinks()
        var kind: ClientEvent.Kind
        var reason: CompactBytes
        var firstMs: Int64
        var lastMs: Int64
        var count: UInt32
    }

    private enum ByTime: ListField {
        static subscript(record: UnsafeMutablePointer<Record>) -> ListLinks {
            get { record.pointee.links }
            set { record.pointee.links = newValue }
        }
    }

    private let pool: BytePool
    private var records = Slab<Record>()
    /// The newest first.
    private var order = IntrusiveList<ByTime>()

    init(pool: BytePool) { self.pool = pool }

    /// Milliseconds without a trouble after which the next one of its kind is counted anew.
    private static func pauseMs(of kind: ClientEvent.Kind) -> Int64 {
        kind == .flapping ? ClientHistories.flappingMs : 3_600_000
    }

    /// Bytes of a client's trouble besides its reason.
    static var recordBytes: Int { MemoryLayout<Record>.stride }

    subscript(place: UInt32) -> Record { records[place] }

    /// The newest; ``noIndex`` without any.
    var newest: UInt32 { order.first }

    func older(than place: UInt32) -> UInt32 { records[place].links.next }

    /// Notes a trouble, as the newest one.
    ///
    /// - Parameters:
    ///   - kind: What it is.
    ///   - reason: Its reason.
    ///   - count: How often it has happened now.
    ///   - client: The client's place.
    ///   - former: The client's trouble so far; ``noIndex`` without one.
    ///   - firstMs: The UNIX time in milliseconds since which it happens, if `former` is another.
    ///   - now: The present UNIX time in milliseconds.
    /// - Returns: The place of the client's trouble.
    mutating func note(
        _ kind: ClientEvent.Kind, _ reason: String, count: UInt64, of client: UInt32,
        former: UInt32, firstMs: Int64, at now: Int64
    ) -> UInt32 {
        var reason = reason
        let text = reason.withUTF8 { CompactBytes(UnsafeRawBufferPointer($0), pool: pool) }
        var trouble = Record(
            client: client, kind: kind, reason: text, firstMs: firstMs, lastMs: now,
            count: UInt32(clamping: count))
        guard former != noIndex else {
            let place = records.insert(trouble)
            order.prepend(place, in: records)
            return place
        }
        let known = records[former]
        if known.kind == kind, now - known.lastMs < Self.pauseMs(of: kind),
            known.reason.withBytes({ text.equals($0) })
        {
            trouble.firstMs = known.firstMs
            trouble.count = UInt32(clamping: UInt64(known.count) + count)
        }
        order.remove(former, in: records)
        known.reason.destroy(in: pool)
        trouble.links = records[former].links
        records[former] = trouble
        order.prepend(former, in: records)
        return former
    }

    mutating func remove(_ place: UInt32) {
        order.remove(place, in: records)
        records[place].reason.destroy(in: pool)
        records.remove(place)
    }
}
