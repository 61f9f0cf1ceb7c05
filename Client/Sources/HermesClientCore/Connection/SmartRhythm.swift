/// The heartbeat that a network was found to bear, learned by trying longer ones.
///
/// ```
/// searching, step 60 ──two failures: 80 s off──> searching finely ──two failures: a step off──┐
///       │ five successes: 60 s more                    │ five successes: a step more          │
///       └────────── at 580 s ────────> stable <────────┴── at 580 s ──────────────────────────┘
///                                        └── seven days later: searching finely
/// ```
/// The fine step is 10 s up to 200 s and 20 s above, so that it is a tenth of the limit at most.
///
/// In `stable` two failures take 80 s off, and the search begins again finely: the network has
/// changed.
package struct SmartRhythm: Hashable, Sendable {
    package static let leastSeconds: UInt16 = 120
    package static let mostSeconds: UInt16 = 580
    package static let successesForMore = 5
    package static let failuresForLess = 2
    package static let stableMilliseconds: Int64 = 7 * 24 * 3_600 * 1_000
    static let coarseStep: UInt16 = 60
    /// Up to ``fineUpTo``, and twice as much above.
    static let fineStep: UInt16 = 10
    static let fineUpTo: UInt16 = 200
    static let stepBack: UInt16 = 80

    package enum Search: UInt8, Hashable, Sendable {
        case coarse = 0
        case fine = 1
        case stable = 2
    }

    package internal(set) var seconds = SmartRhythm.leastSeconds
    package internal(set) var search = Search.coarse
    package internal(set) var successes: UInt8 = 0
    package internal(set) var failures: UInt8 = 0
    /// When `seconds` or `search` changed, in milliseconds since 1970.
    package internal(set) var changedAtUnixMilliseconds: Int64

    package init(changedAtUnixMilliseconds: Int64) {
        self.changedAtUnixMilliseconds = changedAtUnixMilliseconds
    }

    /// A PINGREQ after a whole interval of silence was answered.
    package mutating func noteSuccess(at moment: Moment) {
        failures = 0
        switch search {
        case .stable:
            let age = moment.unixMilliseconds - changedAtUnixMilliseconds
            guard seconds < Self.mostSeconds, age >= Self.stableMilliseconds else { return }
            change(to: seconds + fineStepUp, .fine, at: moment)
        case .coarse, .fine:
            successes += 1
            guard Int(successes) >= Self.successesForMore else { return }
            let step = search == .coarse ? Self.coarseStep : fineStepUp
            change(to: seconds + step, search, at: moment)
        }
    }

    /// A PINGREQ after a whole interval of silence stayed without answer although the network was
    /// there: a reconnect followed quickly.
    package mutating func noteFailure(at moment: Moment) {
        successes = 0
        failures += 1
        guard Int(failures) >= Self.failuresForLess else { return }
        switch search {
        case .coarse, .stable: change(to: seconds - Self.stepBack, .fine, at: moment)
        // The step before was good five times.
        case .fine: change(to: seconds - fineStepDown, .stable, at: moment)
        }
    }

    private var fineStepUp: UInt16 {
        seconds < Self.fineUpTo ? Self.fineStep : 2 * Self.fineStep
    }

    private var fineStepDown: UInt16 {
        seconds <= Self.fineUpTo ? Self.fineStep : 2 * Self.fineStep
    }

    private mutating func change(to seconds: UInt16, _ search: Search, at moment: Moment) {
        self.seconds = min(max(seconds, Self.leastSeconds), Self.mostSeconds)
        self.search = self.seconds == Self.mostSeconds ? .stable : search
        (successes, failures) = (0, 0)
        changedAtUnixMilliseconds = moment.unixMilliseconds
    }
}

/// The learned heartbeats by network label; one beyond the limit takes the place of the one that was
/// used least recently.
package struct RhythmTable: Equatable, Sendable {
    package static let mostLabels = 64
    package static let mostLabelBytes = 128

    /// The label that was used least recently stands first.
    package private(set) var all: [(label: [UInt8], rhythm: SmartRhythm)] = []

    package init() {}

    package subscript(label: [UInt8]) -> SmartRhythm? { all.first { $0.label == label }?.rhythm }

    package mutating func set(_ label: [UInt8], _ rhythm: SmartRhythm) {
        all.removeAll { $0.label == label }
        if all.count >= Self.mostLabels { all.removeFirst() }
        all.append((label, rhythm))
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.all.elementsEqual(right.all) { $0.label == $1.label && $0.rhythm == $1.rhythm }
    }
}
