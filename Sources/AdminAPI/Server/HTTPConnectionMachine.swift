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
        /// Requests whose head came and whose response has not ended.
        var pending = 0
        /// False once a request asked for the end of the connection.
        var keepsAlive = true
        /// True once the broker stops.
        var isStopping = false
        /// True while a response goes out that ends the connection.
        var isLastResponse = false
    }

    private enum Reading {
        case waiting(since: NIODeadline)
        case head(since: NIODeadline, bytes: Int)
        case body(since: NIODeadline, bytes: Int)
        /// The input made no sense, or came too late; nothing more is read from it.
        case failed

        /// Its deadline counts from now on.
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
        /// No request is under way: the connection answers for itself and lingers.
        case answer
        /// The request under way cannot be completed: its reader is told.
        case report
        /// The connection ends after the responses under way, or it has ended.
        case ignore
    }

    enum OnResponse: Equatable {
        case keep
        /// It is the last one, and says so.
        case announceEnd
    }

    enum OnResponseEnd: Equatable {
        case keep
        case linger
    }

    enum OnStop: Equatable {
        case close
        /// An answer is still on its way: our side ends behind it.
        case linger
        case keep
    }

    enum OnTick: Equatable {
        case keep
        case close
        /// Answer 408 and linger, because a head took too long.
        case answerLateHead
        /// Tell the reader of the body that it took too long.
        case reportLateBody
    }

    /// Bytes have arrived, and have not been parsed yet.
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

    /// True when more has arrived than a head may have, and the head is not complete.
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

    /// A request's head is complete.
    mutating func receiveHead(keepsAlive: Bool, at now: NIODeadline) -> OnInput {
        guard case .open(var open) = state else { return .drop }
        if case .failed = open.reading { return .drop }
        guard open.keepsAlive else {
            // The one before was the connection's last: nothing behind it is a request.
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

    /// A part of a request's body has come.
    mutating func receiveBody(_ count: Int) -> OnInput {
        guard case .open(var open) = state, case .body(let since, let bytes) = open.reading else {
            return .drop
        }
        open.reading = .body(since: since, bytes: bytes + count)
        state = .open(open)
        return .take
    }

    /// A request is complete.
    mutating func receiveEnd(at now: NIODeadline) -> OnInput {
        guard case .open(var open) = state, case .body = open.reading else { return .drop }
        open.reading = .waiting(since: now)
        state = .open(open)
        return .take
    }

    /// The input is no HTTP, or more than we take.
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

    /// A response begins.
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

    /// A response has been written to its end.
    mutating func endResponse(at now: NIODeadline) -> OnResponseEnd {
        guard case .open(var open) = state else { return .keep }
        precondition(open.pending > 0, "a response without a request")
        open.pending -= 1
        // The stop may have come behind the response's head.
        if open.isLastResponse || open.isStopping && open.pending == 0 {
            state = .lingering(until: now + limits.linger.timeAmount)
            return .linger
        }
        open.reading.restart(at: now)
        state = .open(open)
        return .keep
    }

    /// The broker stops: what is under way may end, and the `unsentBytes` that the socket has not
    /// taken yet may go out.
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
            state = .open(open)
            return .keep
        case .lingering, .closed: return .keep
        }
    }

    /// Time has passed, and the socket has not taken `unsentBytes` yet.
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
                if open.pending > 1 || now < since + bodyAllowance(bytes) { return .keep }
                open.reading = .failed
                state = .open(open)
                return .reportLateBody
            case .failed: return .keep
            }
        }
    }

    /// Time that a body may have taken when so much of it has come: each byte earns some.
    private func bodyAllowance(_ bytes: Int) -> TimeAmount {
        limits.bodyGrace.timeAmount
            + .nanoseconds(Int64(bytes) * 1_000_000_000 / Int64(limits.bodyBytesPerSecond))
    }
}
