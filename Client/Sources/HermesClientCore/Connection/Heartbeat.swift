/// Decides when a connection gets a PINGREQ and when it is dead.
///
/// A PINGREQ is due when nothing was read for the interval: what was written proves nothing, because
/// a dead connection takes writes for minutes. One is due as well when nothing was written for the
/// keep alive of CONNECT, or the broker would close a connection that only receives
/// [MQTT-3.1.2-23].
struct Heartbeat: Sendable {
    static let answerMilliseconds: Int64 = 10_000
    static let probeMilliseconds: Int64 = 3_000
    /// Other bytes prolong the wait for PINGRESP, up to this; a packet whose length is wrong would
    /// otherwise swallow every PINGRESP and keep the connection alive.
    static let longestAnswerMilliseconds: Int64 = 60_000

    private struct Ping {
        var sentAt: Int64
        var answerMilliseconds: Int64
        /// Nothing went in either direction for the whole interval before.
        var followsSilence: Bool
        /// Sent because of a network event.
        var isProbe: Bool
    }

    enum OnTime: Equatable {
        case nothing
        case ping
        /// `provesLimit`: the network had forgotten the connection after the interval of silence.
        case silent(isProbe: Bool, provesLimit: Bool)
    }

    /// The silence in milliseconds after which a ping is due.
    var intervalMilliseconds: Int64
    private let keepAliveMilliseconds: Int64
    private var readAt: Int64
    private var wroteAt: Int64
    private var ping: Ping?

    init(intervalMilliseconds: Int64, keepAliveMilliseconds: Int64, at now: Int64) {
        self.intervalMilliseconds = intervalMilliseconds
        self.keepAliveMilliseconds = keepAliveMilliseconds
        (readAt, wroteAt) = (now, now)
    }

    var deadline: Int64 {
        if let ping { return answerDeadline(ping) }
        return min(readAt + intervalMilliseconds, wroteAt + keepAliveMilliseconds)
    }

    mutating func noteRead(at now: Int64) { readAt = now }

    mutating func noteWrite(at now: Int64) { wroteAt = now }

    /// The caller sends a PINGREQ after `.ping`.
    mutating func timeReached(_ now: Int64) -> OnTime {
        guard now >= deadline else { return .nothing }
        if let ping {
            return .silent(isProbe: ping.isProbe, provesLimit: ping.followsSilence)
        }
        ping = Ping(
            sentAt: now, answerMilliseconds: Self.answerMilliseconds,
            followsSilence: now - max(readAt, wroteAt) >= intervalMilliseconds, isProbe: false)
        wroteAt = now
        return .ping
    }

    /// The network has changed: an answer must come within 3 s. True if the caller sends a PINGREQ;
    /// false if one is on its way, whose answer is then awaited for 3 s from now.
    mutating func probe(at now: Int64) -> Bool {
        let sends = ping == nil
        ping = Ping(
            sentAt: now, answerMilliseconds: Self.probeMilliseconds, followsSilence: false,
            isProbe: true)
        if sends { wroteAt = now }
        return sends
    }

    /// PINGRESP has come; true if it proves that the network bears the interval.
    mutating func answered() -> Bool {
        defer { ping = nil }
        return ping?.followsSilence ?? false
    }

    private func answerDeadline(_ ping: Ping) -> Int64 {
        min(
            max(ping.sentAt, readAt) + ping.answerMilliseconds,
            ping.sentAt + Self.longestAnswerMilliseconds)
    }
}
