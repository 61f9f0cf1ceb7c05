/// The changes of one session in one segment.
final class SessionDelta {
    let session: UInt64
    /// The session's index in the overlay.
    let record: UInt32
    /// The place of the session's changes in an earlier segment that the database does not have
    /// yet.
    var older = Place(segment: 0, index: .max)
    var newSession: SegmentChanges.NewSession?
    /// True when the segment removed the session, in which case nothing else counts.
    var isRemoved = false
    /// True when the segment ended the session: everything but its queue is removed.
    private(set) var hasEnded = false
    var isAttached: Bool?
    var detachedSinceMs: Int64?
    var horizon: UInt64?
    var end: UInt64?
    /// `nil` for a removed subscription.
    var subscriptions: [[UInt8]: UInt32?] = [:]
    var inbound: [UInt16: Bool] = [:]
    /// The change of the session's will.
    var will: WillState = .unchanged
    /// Positions of earlier segments that are done; rising if acknowledgements came in order.
    private(set) var finished: [ClosedRange<UInt64>] = []
    private(set) var released: [ClosedRange<UInt64>] = []

    /// The place of changes: a segment, and the index among its changes.
    struct Place {
        var segment: UInt64
        var index: UInt32
    }

    enum WillState {
        case unchanged
        case removed
        /// Index of the will's message in the overlay.
        case message(UInt32)
    }

    init(session: UInt64, record: UInt32) {
        self.session = session
        self.record = record
    }

    /// Ends the session. The caller has dropped the reference to the will's message.
    func endSession() {
        hasEnded = true
        isAttached = false
        subscriptions = [:]
        inbound = [:]
        will = .unchanged
    }

    func finish(_ position: UInt64) { Self.add(position, to: &finished) }
    func release(_ position: UInt64) { Self.add(position, to: &released) }

    /// Adds a position. Acknowledgements mostly come in order, so that one range grows.
    private static func add(_ position: UInt64, to ranges: inout [ClosedRange<UInt64>]) {
        if let last = ranges.last, last.upperBound + 1 == position {
            ranges[ranges.count - 1] = last.lowerBound...position
        } else {
            ranges.append(position...position)
        }
    }

    /// The ranges in rising order, with overlapping and adjacent ones joined.
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
