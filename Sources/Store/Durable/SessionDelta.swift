/// What one segment changed about one session.
final class SessionDelta {
    let session: UInt64
    /// The session's index in the overlay.
    let record: UInt32
    /// Where the session's delta in an earlier segment is, if that one is not in the database yet.
    var older = Place(segment: 0, index: .max)
    var newSession: SegmentChanges.NewSession?
    /// The segment removed the session: nothing else of it counts.
    var isRemoved = false
    /// The segment ended the session: what it owns but its queue is gone.
    private(set) var hasEnded = false
    var isAttached: Bool?
    var detachedSinceMs: Int64?
    var horizon: UInt64?
    var end: UInt64?
    /// `nil`: removed.
    var subscriptions: [[UInt8]: UInt8?] = [:]
    var inbound: [UInt16: Bool] = [:]
    /// The will that this segment left, or that it has none any more.
    var will: WillState = .unchanged
    /// Positions of earlier segments that are done, rising where acknowledgements came in order.
    private(set) var finished: [ClosedRange<UInt64>] = []
    private(set) var released: [ClosedRange<UInt64>] = []

    /// A delta among those of its segment.
    struct Place {
        var segment: UInt64
        var index: UInt32
    }

    enum WillState {
        case unchanged
        case removed
        /// The index of its message in the overlay.
        case message(UInt32)
    }

    init(session: UInt64, record: UInt32) {
        self.session = session
        self.record = record
    }

    /// Ends the session; whoever calls this has let the will's message go.
    func endSession() {
        hasEnded = true
        isAttached = false
        subscriptions = [:]
        inbound = [:]
        will = .unchanged
    }

    func finish(_ position: UInt64) { Self.add(position, to: &finished) }
    func release(_ position: UInt64) { Self.add(position, to: &released) }

    /// Acknowledgements mostly come in order, so that one range grows.
    private static func add(_ position: UInt64, to ranges: inout [ClosedRange<UInt64>]) {
        if let last = ranges.last, last.upperBound + 1 == position {
            ranges[ranges.count - 1] = last.lowerBound...position
        } else {
            ranges.append(position...position)
        }
    }

    /// Rising and without overlaps, whatever order they came in.
    static func sorted(_ ranges: [ClosedRange<UInt64>]) -> [ClosedRange<UInt64>] {
        guard ranges.count > 1 else { return ranges }
        var result: [ClosedRange<UInt64>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = result.last,
                last.upperBound >= range.lowerBound
                    || last.upperBound + 1 == range.lowerBound
            {
                result[result.count - 1] =
                    last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                result.append(range)
            }
        }
        return result
    }
}
