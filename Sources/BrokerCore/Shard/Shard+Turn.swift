import BrokerAPI
import MQTTCodec
import Structures

/// What the sockets' owner does next within a turn.
package enum TurnStep {
    /// Read what the connection's socket holds, then go on: its keep alive has run out.
    case readOverdue(Handle)
    /// Offer the connection's kept input again, then go on.
    case offerInput(Handle)
    /// Send the connection's output, say with ``Shard/drained(_:)`` or ``Shard/lost(_:_:)`` how that went, then
    /// go on.
    case send(Handle)
    /// The turn has ended.
    case finish(TurnResult)
}

/// What a turn leaves to be done outside the shard.
package struct TurnResult {
    /// Log these while the kernel still knows the peers' addresses, before connections are closed.
    package let notices: [BrokerNotice]
    package let closing: [Closing]
    package let authentications: [AuthenticationRequest]
}

/// The place of a turn in its order.
struct TurnMachine {
    /// Rounds in which held-back input may lead to further completions within one turn.
    static let settlingRounds = 4

    enum State {
        /// Between turns: the sockets, the store and the admin plane say what has happened.
        case gathering
        /// Connections whose keep alive has run out are read and judged.
        case judging(ArraySlice<Handle>, current: Handle?)
        /// Writes are submitted and completions taken; resumed connections offer their input.
        case settling(round: Int, resumed: ArraySlice<Handle>)
        case sending
    }

    var state = State.gathering
}

/// One turn, after its events: ``beginTurn(at:wallClockMs:)``, what the sockets say (``open(_:listener:origin:)``,
/// ``receive(_:_:)``, ``lost(_:_:)``, ``drained(_:)``) and the admin plane asks; then ``nextStep()`` until the turn has ended.
///
/// 1. Timers: CONNECT deadlines, session expiry; overdue connections after a last look at their sockets.
/// 2. Settling: connections close and publish their wills, messages are handed over, retained ones walked, the
///    turn's writes submitted as one commit, completions taken; resumed connections offer their input, and so on.
/// 3. Output is sent, once per connection; connections whose sockets failed close.
extension Shard {
    /// Timers of one turn: many sessions may have the same time, and no client is to notice.
    private static var timersPerTurn: Int { 1_000 }

    /// Sets the time of a turn; `wallClockMs` is UNIX time in milliseconds.
    package mutating func beginTurn(at now: MonotonicTime, wallClockMs: Int64) {
        context.now = now
        context.wallClockMs = wallClockMs
    }

    /// The next step of the turn, which the caller takes before it asks again.
    package mutating func nextStep() -> TurnStep {
        while true {
            switch turn.state {
            case .gathering:
                expireTimers()
                turn.state = .judging(connections.takeOverdue()[...], current: nil)
            case .judging(var overdue, let current):
                if let current { judge(current) }
                guard let next = overdue.popFirst() else {
                    turn.state = .settling(round: 0, resumed: [])
                    continue
                }
                turn.state = .judging(overdue, current: next)
                return .readOverdue(next)
            case .settling(let round, var resumed):
                if let next = resumed.popFirst() {
                    turn.state = .settling(round: round, resumed: resumed)
                    return .offerInput(next)
                }
                guard round < TurnMachine.settlingRounds else {
                    turn.state = .sending
                    continue
                }
                settle()
                let next = connections.takeResumed()
                turn.state =
                    next.isEmpty ? .sending : .settling(round: round + 1, resumed: next[...])
            case .sending:
                if let handle = connections.takeDirty() { return .send(handle) }
                turn.state = .gathering
                return .finish(finishTurn())
            }
        }
    }

    /// Ends the turn's events in order: what they caused is submitted, and what has completed is taken.
    private mutating func settle() {
        closeEnding()
        if !commits.isBacklogFull { runHandOvers() }
        runRetainedWalks()
        closeEnding()
        if commits.records.hasUncommittedRecords { commit() }
        commits.submit()
        takeCompletions()
    }

    private mutating func finishTurn() -> TurnResult {
        // Connections whose socket failed while it was written; their wills leave with the next turn.
        closeEnding()
        rights.endTurn()
        return TurnResult(
            notices: context.notices.take(), closing: connections.takeClosing(),
            authentications: takeAll(&authentications))
    }

    /// Closes connections between turns, as the end of a turn does, for a caller that needs their places at
    /// once.
    package mutating func closeNow() -> TurnResult { finishTurn() }

    /// When the next turn is due without any event; `nil` when nothing waits for a time.
    package var nextDeadline: MonotonicTime? {
        let hasWork =
            connections.hasWork || commits.hasWork || walks.hasWork || requests.hasWork
            || (endedSessions.hasWork && !commits.holdsMessages)
            || (!handOvers.isEmpty && !commits.isBacklogFull)
        guard !hasWork else { return context.now }
        return MonotonicTime.earliest(
            MonotonicTime.earliest(connections.nextDeadline, sessions.nextExpiry), system.deadline)
    }

    // MARK: Timers

    /// Judges the timers that are due: CONNECT deadlines and session expiry at once, keep alives after a last
    /// look at the socket. Timers beyond the bound are due in the next turn.
    private mutating func expireTimers() {
        var left = Self.timersPerTurn
        while left > 0, let handle = connections.popExpired(now: context.now) {
            connectionTimerFired(handle)
            left -= 1
        }
        while left > 0, let session = sessions.popExpired(now: context.now) {
            expire(session)
            left -= 1
        }
        publishDueSystemTopics()
        closeEnding()
    }

    private mutating func connectionTimerFired(_ handle: Handle) {
        if connections[handle].machine.isAwaitingConnect {
            // A CONNECT that waits for the store has come in time.
            if !connections[handle].intake.awaitsStore { end(handle, .connectTimeout) }
        } else if connections[handle].machine.isDelayed {
            resumeDelayed(handle)
        } else if connections[handle].machine.isOpen {
            if connections.isOverdue(handle, now: context.now) {
                connections.markOverdue(handle)
            } else {
                connections.setKeepAliveTimer(handle, now: context.now)
            }
        }
        // Else the CONNECT came in time, and the broker is the one that keeps the client waiting.
    }

    /// The socket of an overdue connection has been read: it closes unless a packet came.
    private mutating func judge(_ handle: Handle) {
        guard connections.isLive(handle) else { return }
        if connections.isOverdue(handle, now: context.now) {
            end(handle, .keepAlive)
        } else {
            connections.setKeepAliveTimer(handle, now: context.now)
        }
    }
}

extension MonotonicTime {
    /// The earlier one of two times of which either may be absent.
    fileprivate static func earliest(_ one: Self?, _ other: Self?) -> Self? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }
}
