/// What one segment changed about one session.
final class SessionDelta {
    var newSession: SegmentChanges.NewSession?
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
    var finished: [ClosedRange<UInt64>] = []
    var released: [ClosedRange<UInt64>] = []

    enum WillState {
        case unchanged
        case removed
        /// The index of its message in the overlay.
        case message(UInt32)
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
