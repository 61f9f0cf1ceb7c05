import NIOCore

/// Decides how long one HTTP connection may take, and when it ends; performs no I/O and reads no
/// clock.
///
/// ```
///   open ── response to a request that ends the connection ──> lingering ── deadline ──> closed
///    │ ├─── malformed or late head, nothing to answer ────────────^                        ^
///    │ └─── stopping with an answer on its way ───────────────────^                        │
///    └───── idle too long, or stopping with nothing under way ─────────────────────────────┘
/// ```
///
/// Lingering is ours (RFC 9112, section 9.6, recommends it): the answer is out and our side is
/// shut, but what the client still sends is read and dropped for a moment, because closing at once
/// would make the kernel throw the answer away.
///
/// Deadlines run only while we wait for the client: not while an earlier request is being answered,
/// when we may choose not to read, nor while the socket has not taken all of an answer. How long that
/// may take is ``WriteStallMachine``'s to say.
struct HTTPConnectionMachine {
    private enum State {
        case open(Open)
        case lingering(until: NIODeadline)
        case closed
    }

    private struct Open {
        var reading: Reading
        /// Requests whose head was received and whose response has not ended.
        var pending = 0
        /// False after a request for the end of the connection.
        var keepsAlive = true
        /// True during shutdown.
        var isStopping = false
        /// True while the last response is sent.
        var isLastResponse = false
        /// True while a part of the body is being answered before its end.
        var isAnswering = false
    }

    private enum Reading {
        case waiting(since: NIODeadline)
        case head(since: NIODeadline, bytes: Int)
        case body(since: NIODeadline, bytes: Int)
        /// The input was invalid or too late; no more is read.
        case failed

        /// Restarts the deadline.
        mutating func restart(at now: NIODeadline) {
            switch self {
            case .waiting: self = .waiting(since: now)
            case .head(_, let bytes): self = .head(since: now, bytes: bytes)
            case .body(_, let bytes): self = .body(since: now, bytes: bytes)
            case .failed: break
            }
        }
    }

    private var state: State
    private let limits: HTTPLimits

    init(limits: HTTPLimits, now: NIODeadline) {
        self.limits = limits
        state = .open(Open(reading: .waiting(since: now)))
    }

    enum OnInput: Equatable {
        case take
        case drop
    }

    enum OnFailure: Equatable {
        /// No request is in progress: the connection itself answers and lingers.
        case answer
        /// The request in progress cannot be completed: its reader gets an error.
        case report
        /// The connection ends after the responses in progress, or has ended.
        case ignore
    }

    enum OnResponse: Equatable {
        case keep
        /// It is the last one, and announces this.
        case announceEnd
    }

    enum OnResponseEnd: Equatable {
        case keep
        case linger
    }

    enum OnStop: Equatable {
        case close
        /// An answer is being sent; our direction ends after it.
        case linger
        /// The request is answered before its end, and could go on forever: its reader gets an
        /// error.
        case report
        case keep
    }

    enum OnTick: Equatable {
        case keep
        case close
        /// Answer 408 and linger, because a head took too long.
        case answerLateHead
        /// Report to the reader that the body took too long.
        case reportLateBody
    }

    /// Handles received bytes that have not been parsed yet.
    mutating func receiveBytes(_ count: Int, at now: NIODeadline) -> OnInput {
        guard case .open(var open) = state else { return .drop }
        switch open.reading {
        case .waiting: open.reading = .head(since: now, bytes: count)
        case .head(let since, let bytes): open.reading = .head(since: since, bytes: bytes + count)
        case .body: break
        case .failed: return .drop
        }
        state = .open(open)
        return .take
    }

    /// True when an incomplete head exceeds its limit.
    var isHeadTooLarge: Bool {
        guard case .open(let open) = state, case .head(_, let bytes) = open.reading else {
            return false
        }
        return bytes > limits.headBytes
    }

    /// True while a request is being read or answered.
    var hasRequest: Bool {
        guard case .open(let open) = state else { return false }
        switch open.reading {
        case .head, .body: return true
        case .waiting, .failed: return open.pending > 0
        }
    }

    /// True while a request waits behind another.
    var isPipelining: Bool {
        guard case .open(let open) = state else { return false }
        return open.pending > 1
    }

    /// Handles a complete head.
    mutating func receiveHead(keepsAlive: Bool, at now: NIODeadline) -> OnInput {
        guard case .open(var open) = state else { return .drop }
        if case .failed = open.reading { return .drop }
        guard open.keepsAlive else {
            // The former request was the last: no request may follow it.
            open.reading = .failed
            state = .open(open)
            return .drop
        }
        open.reading = .body(since: now, bytes: 0)
        open.pending += 1
        open.keepsAlive = open.keepsAlive && keepsAlive
        state = .open(open)
        return .take
    }

    /// Handles a part of a request's body.
    mutating func receiveBody(_ count: Int) -> OnInput {
        guard case .open(var open) = state, case .body(let since, let bytes) = open.reading else {
            return .drop
        }
        open.reading = .body(since: since, bytes: bytes + count)
        state = .open(open)
        return .take
    }

    /// Handles the beginning or end of work on what the body has brought so far. Meanwhile the body
    /// has time, and afterwards its time begins anew.
    mutating func setAnswering(_ isAnswering: Bool, at now: NIODeadline) {
        guard case .open(var open) = state else { return }
        open.isAnswering = isAnswering
        if case .body = open.reading { open.reading = .body(since: now, bytes: 0) }
        state = .open(open)
    }

    /// Handles the end of a request.
    mutating func receiveEnd(at now: NIODeadline) -> OnInput {
        guard case .open(var open) = state, case .body = open.reading else { return .drop }
        open.reading = .waiting(since: now)
        state = .open(open)
        return .take
    }

    /// Handles input that is no HTTP or exceeds a limit.
    mutating func fail(at now: NIODeadline) -> OnFailure {
        guard case .open(var open) = state else { return .ignore }
        switch open.reading {
        case .failed: return .ignore
        case .body:
            open.reading = .failed
            state = .open(open)
            return .report
        case .waiting, .head:
            if open.pending == 0 {
                state = .lingering(until: now + limits.linger.timeAmount)
                return .answer
            }
            open.reading = .failed
            state = .open(open)
            return .ignore
        }
    }

    /// Handles the beginning of a response.
    mutating func beginResponse() -> OnResponse {
        guard case .open(var open) = state else { return .announceEnd }
        let isReadToItsEnd =
            switch open.reading {
            case .waiting, .head: true
            case .body, .failed: false
            }
        open.isLastResponse =
            open.pending <= 1 && !(open.keepsAlive && isReadToItsEnd && !open.isStopping)
        state = .open(open)
        return open.isLastResponse ? .announceEnd : .keep
    }

    /// Handles the end of a response.
    mutating func endResponse(at now: NIODeadline) -> OnResponseEnd {
        guard case .open(var open) = state else { return .keep }
        precondition(open.pending > 0, "a response without a request")
        open.pending -= 1
        // The shutdown may have begun after the response's head.
        if open.isLastResponse || open.isStopping && open.pending == 0 {
            state = .lingering(until: now + limits.linger.timeAmount)
            return .linger
        }
        open.reading.restart(at: now)
        state = .open(open)
        return .keep
    }

    /// Begins the shutdown: requests in progress may finish, and `unsentBytes` may be sent.
    mutating func stop(unsentBytes: Int, at now: NIODeadline) -> OnStop {
        switch state {
        case .open(var open):
            if open.pending == 0 {
                if unsentBytes == 0 {
                    state = .closed
                    return .close
                }
                state = .lingering(until: now + limits.linger.timeAmount)
                return .linger
            }
            open.isStopping = true
            if case .body = open.reading, open.isLastResponse {
                open.reading = .failed
                state = .open(open)
                return .report
            }
            state = .open(open)
            return .keep
        case .lingering, .closed: return .keep
        }
    }

    /// Handles the passing of time; the socket has not taken `unsentBytes`.
    mutating func tick(unsentBytes: Int, at now: NIODeadline) -> OnTick {
        switch state {
        case .closed: return .keep
        case .lingering(let until):
            if unsentBytes > 0 {
                state = .lingering(until: now + limits.linger.timeAmount)
                return .keep
            }
            if now < until { return .keep }
            state = .closed
            return .close
        case .open(var open):
            if unsentBytes > 0 {
                open.reading.restart(at: now)
                state = .open(open)
                return .keep
            }
            switch open.reading {
            case .waiting(let since):
                if open.pending > 0 || now < since + limits.idle.timeAmount { return .keep }
                state = .closed
                return .close
            case .head(let since, _):
                if open.pending > 0 || now < since + limits.head.timeAmount { return .keep }
                state = .lingering(until: now + limits.linger.timeAmount)
                return .answerLateHead
            case .body(let since, let bytes):
                if open.isAnswering || open.pending > 1 || now < since + bodyAllowance(bytes) {
                    return .keep
                }
                open.reading = .failed
                state = .open(open)
                return .reportLateBody
            case .failed: return .keep
            }
        }
    }

    /// Time allowed for a body of which so many bytes have arrived.
    private func bodyAllowance(_ bytes: Int) -> TimeAmount {
        limits.bodyGrace.timeAmount
            + .nanoseconds(Int64(bytes) * 1_000_000_000 / Int64(limits.bodyBytesPerSecond))
    }
}
