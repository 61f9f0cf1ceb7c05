/// The sequences of one channel that the app has acknowledged: the highest of them, the mark, and
/// one bit for each of the 1,024 up to it.
///
/// A sequence below the window counts as seen: the broker delivers a channel in order, so that only
/// a repeat comes so late.
///
/// A broker that lost its store, or was given back an old one, counts a channel anew. Its messages
/// have numbers that were seen, but are younger than all that were: then the window begins anew.
package struct ChannelWindow: Hashable, Sendable {
    package static let size: UInt64 = 1_024

    /// The first sequence that was seen; smaller ones that are missing are no holes.
    package private(set) var baseline: UInt64
    /// The highest sequence that was seen.
    package private(set) var mark: UInt64
    /// Holes up to this sequence have been told to the app as lost.
    package var toldUpTo: UInt64
    /// The number of sequences that have been told as lost.
    package var losses: UInt64
    /// The latest time at which the broker took one that was seen, UNIX time.
    package private(set) var latestMilliseconds: Int64
    /// A subscription has ended or begins anew: the next message above the mark is the baseline.
    package private(set) var beginsAnew = false
    /// Bit `sequence % 1024`.
    private(set) var words: [UInt64]

    package init(baseline: UInt64) {
        self.baseline = baseline
        mark = baseline
        toldUpTo = 0
        losses = 0
        latestMilliseconds = 0
        words = Array(repeating: 0, count: Int(Self.size / 64))
        set(baseline)
    }

    /// A channel of which nothing is acknowledged, and holes up to a sequence are told as lost.
    init(toldUpTo: UInt64, losses: UInt64) {
        self.init(baseline: toldUpTo)
        clear(toldUpTo)
        (self.toldUpTo, self.losses) = (toldUpTo, losses)
    }

    /// Restores a window from its parts; `nil` unless there are 16 words.
    init?(
        baseline: UInt64, mark: UInt64, toldUpTo: UInt64, losses: UInt64,
        latestMilliseconds: Int64, words: [UInt64], beginsAnew: Bool
    ) {
        guard words.count == Int(Self.size / 64), mark >= baseline else { return nil }
        self.baseline = baseline
        self.mark = mark
        self.toldUpTo = toldUpTo
        self.losses = losses
        self.latestMilliseconds = latestMilliseconds
        self.words = words
        self.beginsAnew = beginsAnew
    }

    /// What is missing up to the next message above the mark is no loss.
    package mutating func forgetBaseline() { beginsAnew = true }

    /// True for a repeat. A message whose number was seen, and that is younger than all that were
    /// seen, belongs to a channel that has begun anew.
    package func hasSeen(_ numbers: SequenceNumbers) -> Bool {
        contains(numbers.sequence) && numbers.publishedAtMilliseconds <= latestMilliseconds
    }

    /// Notes a message that the app has acknowledged, and the sequences that it stands for.
    package mutating func insert(_ numbers: SequenceNumbers) {
        if contains(numbers.sequence), !hasSeen(numbers) {
            let losses = losses
            self = ChannelWindow(baseline: numbers.sequence)
            self.losses = losses
        }
        if beginsAnew, numbers.sequence > mark {
            // What was missed in between stays unset: it is delivered if it comes after all.
            baseline = numbers.sequence
            toldUpTo = max(toldUpTo, numbers.sequence - 1)
            beginsAnew = false
        }
        for superseded in numbers.superseded where superseded <= numbers.sequence {
            insert(superseded)
        }
        insert(numbers.sequence)
        latestMilliseconds = max(latestMilliseconds, numbers.publishedAtMilliseconds)
    }

    package func contains(_ sequence: UInt64) -> Bool {
        if sequence > mark { return false }
        return mark - sequence >= Self.size || isSet(sequence)
    }

    package mutating func insert(_ sequence: UInt64) {
        if sequence > mark {
            // What lay in the places of the sequences in between has left the window.
            let steps = min(sequence - mark, Self.size)
            for step in 0..<steps { clear(sequence - step) }
            mark = sequence
        }
        if mark - sequence < Self.size { set(sequence) }
    }

    /// The holes of the window that have not been told as lost, lowest first.
    package var untoldHoles: [ClosedRange<UInt64>] {
        var holes: [ClosedRange<UInt64>] = []
        var sequence = max(baseline, toldUpTo == .max ? .max : toldUpTo + 1)
        if mark >= Self.size { sequence = max(sequence, mark - Self.size + 1) }
        while sequence < mark {
            let first = sequence
            while sequence < mark, !isSet(sequence) { sequence += 1 }
            if first < sequence { holes.append(first...sequence - 1) }
            while sequence < mark, isSet(sequence) { sequence += 1 }
        }
        return holes
    }

    private func isSet(_ sequence: UInt64) -> Bool {
        words[Self.word(sequence)] >> (sequence % 64) & 1 == 1
    }

    private mutating func set(_ sequence: UInt64) {
        words[Self.word(sequence)] |= 1 << (sequence % 64)
    }

    private mutating func clear(_ sequence: UInt64) {
        words[Self.word(sequence)] &= ~(1 << (sequence % 64))
    }

    private static func word(_ sequence: UInt64) -> Int { Int(sequence % size / 64) }
}
