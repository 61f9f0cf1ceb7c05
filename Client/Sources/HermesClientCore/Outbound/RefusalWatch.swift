/// Finds the publication upon which the broker closes the connection: MQTT 3.1.1 has no other way to
/// refuse a PUBLISH.
///
/// ```
/// in flight ──the broker ends the connection──> suspect: sent alone, after all else is acknowledged
///     ^  ^                                        │                │ closed in order upon it, alone
///     │  └── a connection ends without it ────────┘                v
///     └───────── the next try of a connection fails ─────────── accused
///                                                                  │ the next try succeeds
///                                  held back, with its topic <─────┘
/// ```
/// A broker that is killed and a network that breaks end connections as well. They do so with a
/// reset, or a broker that cannot be reached next, or at a time when no suspect is in flight: such
/// ends prove little, and only the fifth upon one publication, alone each time, holds it back. What
/// is left are cuts by something between that closes in order; therefore a topic is first held back
/// for 5 s, and for longer each time that the suspicion proves true.
struct RefusalWatch: Sendable {
    enum Publication: Hashable {
        /// A message of the outbox, by its key.
        case message(UInt64)
        case report
    }

    static let mostDoubtfulEnds = 5
    /// A close that comes later after the last PUBLISH has another cause.
    static let promptMilliseconds: Int64 = 10_000
    static let firstHoldMilliseconds: Int64 = 5_000
    static let firstReportHoldMilliseconds: Int64 = 3_600_000
    static let growth: Int64 = 4
    static let longestHoldMilliseconds: Int64 = 4 * 3_600_000
    static let longestReportHoldMilliseconds: Int64 = 24 * 3_600_000

    private struct Hold {
        /// `Int64.max` while one of the topic's messages is tried.
        var until: Int64
        var milliseconds: Int64
    }

    /// Publications that were in flight when the broker ended a connection, with the number of ends
    /// that each has met alone and that prove little.
    private var suspects: [Publication: Int] = [:]
    private var accused: Publication?
    /// Topics whose messages are held back, or were and are tried again.
    private var holds: [[UInt8]: Hold] = [:]
    /// How long the next report that is refused waits.
    private var reportHoldMilliseconds = RefusalWatch.firstReportHoldMilliseconds

    var hasSuspects: Bool { !suspects.isEmpty }

    func isSuspect(_ publication: Publication) -> Bool { suspects[publication] != nil }

    /// The broker has acknowledged the publication, or the app has discarded it.
    mutating func settled(_ publication: Publication) {
        suspects[publication] = nil
        if accused == publication { accused = nil }
        if publication == .report { reportHoldMilliseconds = Self.firstReportHoldMilliseconds }
    }

    /// The publication was refused before: the next close confirms that.
    mutating func suspect(_ publication: Publication) { suspects[publication] = 0 }

    /// The broker has ended a connection on which these were in flight. `isOrderly` is false for a
    /// reset and for a write that failed.
    mutating func ended(upon publications: [Publication], isOrderly: Bool) {
        guard publications.count == 1, let only = publications.first, isSuspect(only) else {
            for publication in publications where !isSuspect(publication) { suspect(publication) }
            return
        }
        if isOrderly { accused = only } else { doubt(only) }
    }

    /// A connection has ended while publications were held back at its gate: the cause is elsewhere.
    mutating func endedWithout() { suspects = [:] }

    /// A try to connect has failed: the end before it was one of the broker or of the network.
    mutating func tryFailed() {
        guard let accused else { return }
        self.accused = nil
        doubt(accused)
    }

    private mutating func doubt(_ publication: Publication) {
        suspects[publication, default: 0] += 1
    }

    /// The broker has accepted a connection: returns the publication that it refuses, if that is
    /// certain enough.
    mutating func connected() -> Publication? {
        let refused = accused ?? suspects.first { $0.value >= Self.mostDoubtfulEnds }?.key
        accused = nil
        if let refused { suspects[refused] = nil }
        return refused
    }

    // MARK: Topics that are held back

    /// Holds a topic back; true if that is so for the first time.
    mutating func hold(_ topic: [UInt8], at now: Int64) -> Bool {
        let earlier = holds[topic]
        let milliseconds = min(
            earlier.map { Self.growth * $0.milliseconds } ?? Self.firstHoldMilliseconds,
            Self.longestHoldMilliseconds)
        holds[topic] = Hold(until: now + milliseconds, milliseconds: milliseconds)
        return earlier == nil
    }

    /// Holds topics back that were so in an earlier life of the program.
    mutating func holdAgain(_ topics: [[UInt8]], at now: Int64) {
        for topic in topics where holds[topic] == nil { _ = hold(topic, at: now) }
    }

    /// One message of the topic is tried: the others wait for what becomes of it.
    mutating func tries(_ topic: [UInt8]) { holds[topic]?.until = .max }

    /// The message that was tried is gone without an answer: another one is tried later.
    mutating func triedInVain(_ topic: [UInt8], at now: Int64) {
        guard let hold = holds[topic], hold.until == .max else { return }
        holds[topic]?.until = now + hold.milliseconds
    }

    /// The topic is no longer held back.
    mutating func release(_ topic: [UInt8]) { holds[topic] = nil }

    /// The time at which one of the messages that are held back is to be tried again.
    func nextRetry(of held: [OutgoingMessage]) -> Int64? {
        let next = held.lazy.compactMap { holds[$0.topic]?.until }.reduce(Int64.max, min)
        return next == .max ? nil : next
    }

    /// A report was refused; the next refusal holds it back for longer.
    mutating func holdReport() -> Int64 {
        let milliseconds = reportHoldMilliseconds
        reportHoldMilliseconds = min(
            Self.growth * milliseconds, Self.longestReportHoldMilliseconds)
        return milliseconds
    }
}
