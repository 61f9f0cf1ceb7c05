import Glibc
import Structures

/// Rates per minute, smoothed over 1, 5 and 15 minutes like the load of a Unix system: a sample's
/// weight falls to 1/e after the span.
///
/// Sampled once per interval, or at the first turn after it. An idle broker need not wake: events
/// counted at that turn belong to the first interval, and the rest was idle.
package struct LoadAverages {
    /// The averaged quantities; the raw value indexes a sample.
    package enum Quantity: Int, CaseIterable {
        case connections, sockets, packetsReceived, packetsSent, publishesReceived, publishesSent
        case publishesDropped, bytesReceived, bytesSent
    }

    /// The span of an average, in minutes.
    package enum Span: Int, CaseIterable {
        case one = 1
        case five = 5
        case fifteen = 15

        fileprivate var index: Int {
            switch self {
            case .one: 0
            case .five: 1
            case .fifteen: 2
            }
        }
    }

    /// Counters at one moment, in the order of ``Quantity``.
    package typealias Sample = [UInt64]

    private let intervalMilliseconds: UInt64
    private var sampledAt: MonotonicTime
    private var last = Sample(repeating: 0, count: Quantity.allCases.count)
    private var averages = [Double](
        repeating: 0, count: Quantity.allCases.count * Span.allCases.count)

    package init(intervalMilliseconds: UInt64, now: MonotonicTime) {
        self.intervalMilliseconds = intervalMilliseconds
        sampledAt = now
    }

    /// True when an interval has passed since the last sample.
    package func isDue(at now: MonotonicTime) -> Bool {
        now.milliseconds(since: sampledAt) >= intervalMilliseconds
    }

    /// Adds a sample of counters.
    package mutating func add(_ sample: Sample, at now: MonotonicTime) {
        let elapsed = now.milliseconds(since: sampledAt)
        guard elapsed > 0 else { return }
        let active = min(elapsed, intervalMilliseconds)
        sampledAt = now
        for quantity in Quantity.allCases {
            let growth = sample[quantity.rawValue] - last[quantity.rawValue]
            let rate = Double(growth) * 60_000 / Double(active)
            for span in Span.allCases {
                let index = Self.index(quantity, span)
                let weight = Self.decay(active, span)
                averages[index] =
                    (averages[index] * weight + rate * (1 - weight))
                    * Self.decay(elapsed - active, span)
            }
        }
        last = sample
    }

    /// Per minute.
    package subscript(quantity: Quantity, span: Span) -> Double {
        averages[Self.index(quantity, span)]
    }

    private static func index(_ quantity: Quantity, _ span: Span) -> Int {
        quantity.rawValue * Span.allCases.count + span.index
    }

    private static func decay(_ milliseconds: UInt64, _ span: Span) -> Double {
        exp(-Double(milliseconds) / (60_000 * Double(span.rawValue)))
    }
}
