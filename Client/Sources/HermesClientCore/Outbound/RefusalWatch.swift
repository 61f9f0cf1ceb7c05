/// Finds the publication upon which the broker closes the connection: MQTT 3.1.1 has no other way to
/// refuse a PUBLISH.
///
/// A close while publications are in flight makes suspects of them. Suspects are sent again one at a
/// time, so that a second close names the one that is refused. Cuts of the network look the same;
/// therefore a publication that is held back is tried again after 10 minutes, and then after twice
/// as long each time.
struct RefusalWatch: Sendable {
    enum Publication: Hashable {
        /// A message of the outbox, by its key.
        case message(UInt64)
        case report
    }

    static let closesForRefusal = 2
    /// A close that comes later after the last PUBLISH has another cause.
    static let promptMilliseconds: Int64 = 10_000
    static let firstHoldMilliseconds: Int64 = 600_000
    static let longestHoldMilliseconds: Int64 = 4 * 3_600_000

    private struct Hold {
        var until: Int64
        var milliseconds: Int64
    }

    /// Closes that each publication has met in flight.
    private var closes: [Publication: Int] = [:]
    /// Messages that are held back, or were and are tried again.
    private var holds: [UInt64: Hold] = [:]

    /// Publications are sent one at a time while one of them is a suspect.
    var hasSuspects: Bool { !closes.isEmpty }

    /// The broker has acknowledged the publication, or the app has discarded it.
    mutating func settled(_ publication: Publication) {
        closes[publication] = nil
        if case .message(let key) = publication { holds[key] = nil }
    }

    /// The publication was refused before: the next close confirms that.
    mutating func suspect(_ publication: Publication) {
        closes[publication] = Self.closesForRefusal - 1
    }

    /// The broker has closed a connection on which these were in flight; returns the one that it
    /// refuses, if that is certain enough.
    mutating func closed(upon publications: [Publication]) -> Publication? {
        for publication in publications { closes[publication, default: 0] += 1 }
        guard publications.count == 1, let only = publications.first,
            closes[only, default: 0] >= Self.closesForRefusal
        else { return nil }
        closes[only] = nil
        return only
    }

    /// Holds a message back; true if it is held back for the first time.
    mutating func hold(_ key: UInt64, at now: Int64) -> Bool {
        let earlier = holds[key]
        let milliseconds = min(
            earlier.map { 2 * $0.milliseconds } ?? Self.firstHoldMilliseconds,
            Self.longestHoldMilliseconds)
        holds[key] = Hold(until: now + milliseconds, milliseconds: milliseconds)
        return earlier == nil
    }

    /// The time at which one of the messages that are held back is to be tried again.
    func nextRetry(of held: [OutgoingMessage]) -> Int64? {
        held.compactMap { holds[$0.key]?.until }.min()
    }
}
