/// Finds the sequences that do not come: a hole that is 5 s old, and that no later message explains
/// as superseded, is a loss.
///
/// Only time with a connection counts, because the broker redelivers after a reconnect. Channels
/// beyond the limit are not watched until others have no holes.
struct LossWatch: Sendable {
    static let patienceMilliseconds: Int64 = 5_000
    static let mostChannels = 1_000
    /// Holes of one channel; with more the oldest is told before its time.
    static let mostHoles = 64

    private struct Hole {
        var range: ClosedRange<UInt64>
        var since: Int64
    }

    private struct Watch {
        var highest: UInt64
        /// In the order of time, which is that of the numbers.
        var holes: [Hole]
    }

    private var watches: [[UInt8]: Watch] = [:]
    /// No hole is due before; `nil` if there is none.
    private(set) var deadline: Int64?

    /// A message has come that is no duplicate. `window` is what the app has acknowledged of its
    /// channel.
    mutating func arrived(_ numbers: SequenceNumbers, window: ChannelWindow?, at now: Int64) {
        if watches[numbers.channel] == nil {
            makeRoom()
            guard watches.count < Self.mostChannels else { return }
            guard let watch = Self.watch(numbers, window, at: now) else { return }
            watches[numbers.channel] = watch
        }
        guard var watch = watches[numbers.channel] else { return }
        // In place: the dictionary holds no second copy of the holes meanwhile.
        watches[numbers.channel] = nil
        if numbers.sequence > watch.highest {
            // What was told before a kill is not told again.
            let first = max(watch.highest, window?.toldUpTo ?? 0)
            if first < numbers.sequence - 1 {
                watch.holes.append(Hole(range: first + 1...numbers.sequence - 1, since: now))
            }
            watch.highest = numbers.sequence
        } else if window?.contains(numbers.sequence) == true {
            // It is no repeat: the channel has begun anew, and what it lacked before has no number.
            watch = Watch(highest: numbers.sequence, holes: [])
        } else {
            Self.fill(&watch.holes, numbers.sequence)
        }
        for superseded in numbers.superseded { Self.fill(&watch.holes, superseded) }
        if watch.holes.count > Self.mostHoles { watch.holes[0].since = .min / 2 }
        if let first = watch.holes.first {
            deadline = min(deadline ?? .max, first.since + Self.patienceMilliseconds)
        }
        watches[numbers.channel] = watch
    }

    /// Goes on with the holes that a former life of the program knew of.
    mutating func restore(_ channel: [UInt8], _ window: ChannelWindow) {
        let holes = window.beginsAnew ? [] : window.untoldHoles
        guard !holes.isEmpty, watches.count < Self.mostChannels else { return }
        watches[channel] = Watch(
            highest: window.mark, holes: holes.map { Hole(range: $0, since: 0) })
        // They wait for a connection.
        deadline = .max
    }

    /// A subscription of the channel has ended or begins anew.
    mutating func forget(_ channel: [UInt8]) { watches[channel] = nil }

    /// The first message of a channel in this life of the program, or of a subscription; `nil` if
    /// the baseline is still to come.
    private static func watch(
        _ numbers: SequenceNumbers, _ window: ChannelWindow?, at now: Int64
    ) -> Watch? {
        guard let window else { return Watch(highest: numbers.sequence, holes: []) }
        guard window.beginsAnew else {
            return Watch(
                highest: window.mark,
                holes: window.untoldHoles.map { Hole(range: $0, since: now) })
        }
        return numbers.sequence > window.mark
            ? Watch(highest: numbers.sequence, holes: []) : nil
    }

    /// A connection begins: what is missing may still come.
    mutating func connected(at now: Int64) {
        for channel in watches.keys {
            guard let count = watches[channel]?.holes.count else { continue }
            for index in 0..<count { watches[channel]?.holes[index].since = now }
        }
        if deadline != nil { deadline = now + Self.patienceMilliseconds }
    }

    /// Takes out the holes whose time has come, by channel; a hole is told once.
    mutating func takeLosses(at now: Int64) -> [(channel: [UInt8], lost: [ClosedRange<UInt64>])] {
        guard let deadline, now >= deadline else { return [] }
        var losses: [(channel: [UInt8], lost: [ClosedRange<UInt64>])] = []
        self.deadline = nil
        for (channel, watch) in watches {
            let due = watch.holes.prefix { $0.since + Self.patienceMilliseconds <= now }
            if !due.isEmpty {
                losses.append((channel, due.map(\.range)))
                watches[channel]?.holes.removeFirst(due.count)
            }
            if due.count < watch.holes.count {
                let next = watch.holes[due.count].since + Self.patienceMilliseconds
                self.deadline = min(self.deadline ?? .max, next)
            }
        }
        return losses.sorted { $0.channel.lexicographicallyPrecedes($1.channel) }
    }

    private mutating func makeRoom() {
        guard watches.count >= Self.mostChannels else { return }
        watches = watches.filter { !$0.value.holes.isEmpty }
    }

    private static func fill(_ holes: inout [Hole], _ sequence: UInt64) {
        guard let index = holes.firstIndex(where: { $0.range.contains(sequence) }) else { return }
        let hole = holes[index]
        var parts: [Hole] = []
        if hole.range.lowerBound < sequence {
            parts.append(Hole(range: hole.range.lowerBound...sequence - 1, since: hole.since))
        }
        if sequence < hole.range.upperBound {
            parts.append(Hole(range: sequence + 1...hole.range.upperBound, since: hole.since))
        }
        holes.replaceSubrange(index...index, with: parts)
    }
}
