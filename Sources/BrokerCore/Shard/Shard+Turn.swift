import BrokerAPI
import MQTTCodec
import Structures

/// The next step of a turn, for the owner of the sockets.
public enum TurnStep: BitwiseCopyable {
    /// Read the connection's socket, since its keep alive has expired. Then go on.
    case readOverdue(Handle)
    /// Offer the connection's kept input again, then go on.
    case offerInput(Handle)
    /// Send the connection's output, at most ``Shard/mostSentAtOnce``. Report the result with
    /// ``Shard/drained(_:)``, ``Shard/sentPart(_:)`` or ``Shard/lost(_:_:)``, then go on.
    case send(Handle)
    /// Carry out what ``Shard/takeResult()`` hands out, then go on.
    case carryOut
    /// The turn has ended.
    case finish
}

/// Work that a turn leaves to the owner of the sockets.
public struct TurnResult {
    /// Notices to log before the connections are closed, while the kernel still knows their peers.
    public let notices: [BrokerNotice]
    public let closing: [Closing]
    public let authentications: [AuthenticationRequest]
}

/// The phase of a turn.
package struct TurnMachine {
    /// Rounds per turn in which resumed input may cause further completions.
    package static let settlingRounds: UInt8 = 4

    package enum State: BitwiseCopyable {
        /// Between turns: sockets, store and admin plane report events.
        case gathering
        /// The connection, whose keep alive has expired, is read and then judged.
        case judging(Handle)
        /// Connections whose packets wait since earlier turns offer them, as many as there were when
        /// the turn began.
        case continuing(offers: Int)
        /// Writes are submitted and completions taken; resumed connections offer their input, as many
        /// as there were when the round began.
        case settling(round: UInt8, offers: Int)
        /// Output is sent, at most so much.
        case sending(left: Int)
        /// Everything is sent, and what is left is carried out.
        case ending
    }

    package var state = State.gathering
    /// Before this time no timer of the next turn is due.
    var quietUntil = MonotonicTime(milliseconds: 0)

    /// True while connections whose packets wait since earlier turns offer them.
    package var isContinuing: Bool {
        if case .continuing = state { true } else { false }
    }
}

/// One turn. ``beginTurn(at:microseconds:wallClockMs:)`` starts it; then come events of sockets
/// (``open(_:listener:origin:)``, ``receive(_:_:)``, ``lost(_:_:)``, ``drained(_:)``) and admin
/// plane; then ``nextStep()`` until the turn has ended.
///
/// 1. Timers: CONNECT deadlines, session expiry; connections with expired keep alive after a last
/// read. Then groups of the admin plane, pushes, and connections whose packets wait since earlier turns
/// (``WorkBudget``).
/// 2. Settling: connections close and publish wills, messages are handed over, retained messages
/// walked, writes submitted as one commit, completions taken, resumed input offered; repeated.
/// 3. Output is sent in the order of ``SendLine``; connections whose sockets failed close. What exceeds
/// a turn's bound is sent in the next.
extension Shard {
    /// Timers handled per turn, because many sessions may expire at the same time.
    private static var timersPerTurn: Int { 1_000 }
    /// Sends per turn, about 1 ms. Each 8 KiB of a connection's output count as one more.
    private static var sendsPerTurn: Int { 128 }
    /// Some things go by the wall clock or by limits, and need no time of their own.
    private static var longestQuietMilliseconds: UInt64 { 1_000 }

    /// Begins a turn; `wallClockMs` is UNIX time in milliseconds. `microseconds` is `now` in a finer
    /// unit, for what takes less than a millisecond.
    public mutating func beginTurn(
        at now: MonotonicTime, microseconds: UInt64? = nil, wallClockMs: Int64
    ) {
        context.now = now
        context.nowMicroseconds = microseconds ?? now.milliseconds &* 1_000
        context.wallClockMs = wallClockMs
    }

    /// The next step of the turn, which the caller takes before it asks again.
    public mutating func nextStep() -> TurnStep {
        switch turn.state {
        case .gathering:
            if context.now >= turn.quietUntil { expireTimers() }
            turn.quietUntil = MonotonicTime(milliseconds: 0)
            if !rechecks.isEmpty { continueRechecks() }
            if system.isPublishing { continueSystemTopics() }
            return readNext()
        case .judging(let handle):
            judge(handle)
            return readNext()
        case .continuing(let offers): return continueNext(offers)
        case .settling(let round, let offers): return offerNext(round, offers)
        case .sending(let left): return sendNext(left)
        case .ending:
            turn.state = .gathering
            return .finish
        }
    }

    private mutating func readNext() -> TurnStep {
        if let handle = connections.popOverdue() {
            turn.state = .judging(handle)
            return .readOverdue(handle)
        }
        let waiting = connections.turnWaiterCount
        guard waiting > 0 || isPublishing else { return offerNext(0, 0) }
        context.budget.releaseReserve()
        if isPublishing { followers.publish(&self) }
        return continueNext(waiting)
    }

    @inline(never)
    private mutating func continueNext(_ offers: Int) -> TurnStep {
        guard offers > 0, !context.budget.isSpent,
            let handle = connections.popTurnWaiter(now: context.now)
        else { return offerNext(0, 0) }
        turn.state = .continuing(offers: offers - 1)
        return .offerInput(handle)
    }

    private mutating func offerNext(_ round: UInt8, _ offers: Int) -> TurnStep {
        var (round, offers) = (round, offers)
        while true {
            if offers > 0, let handle = connections.popResumed() {
                turn.state = .settling(round: round, offers: offers - 1)
                return .offerInput(handle)
            }
            guard round < TurnMachine.settlingRounds else { break }
            settle()
            offers = connections.resumedCount
            guard offers > 0 else { break }
            round += 1
        }
        return sendNext(Self.sendsPerTurn)
    }

    @inline(__always)
    private mutating func sendNext(_ left: Int) -> TurnStep {
        if left > 0, let handle = connections.takeDirty() {
            turn.state = .sending(left: left - connections[handle].outlet.sendUnits)
            return .send(handle)
        }
        endEvents()
        // The budget is that of the next turn, which may handle packets before its time is set.
        let hasUnsent = connections.hasUnsent
        let hasWaiting = connections.turnWaiterCount > 0 || isPublishing
        if hasUnsent || hasWaiting {
            context.budget.beginTurn(
                hasUnsent: hasUnsent, hasWaiting: hasWaiting, pool: context.pool)
        } else {
            context.budget.beginTurn()
        }
        if subscriptions.needsTurn { continueSubscriptions() }
        guard hasResult else {
            turn.state = .gathering
            return .finish
        }
        turn.state = .ending
        return .carryOut
    }

    /// Settles the turn's events in order: submits what they wrote and takes completions.
    private mutating func settle() {
        connections.beginSource()
        closeEndingWithinBudget()
        publishDelayedWills()
        if !commits.isBacklogFull { runHandOvers() }
        runRetainedWalks()
        closeEndingWithinBudget()
        if commits.records.hasUncommittedRecords { commit() }
        commits.submit(context)
        takeCompletions()
        if agenda.isStirred || agenda.maySettle { followers.settle(&self) }
    }

    private mutating func endEvents() {
        // Connections whose sockets failed during sending; their wills are sent in the next turn.
        closeEndingWithinBudget()
        rights.endTurn()
    }

    private var hasResult: Bool {
        connections.hasClosing || !context.notices.isEmpty || !authentications.isEmpty
    }

    /// Takes the notices, closings and password checks that have come up since the last call.
    public mutating func takeResult() -> TurnResult {
        TurnResult(
            notices: context.notices.take(), closing: connections.takeClosing(),
            authentications: takeAll(&authentications))
    }

    /// Closes ending connections between turns, for a caller that needs their places at once.
    public mutating func closeNow() -> TurnResult {
        endEvents()
        return takeResult()
    }

    /// ``nextDeadline``, for a caller that begins the next turn by then. Unless it has come, that turn
    /// asks no timer: what events make due meanwhile is the business of the turn after.
    public mutating func planTurn() -> MonotonicTime? {
        let deadline = nextDeadline
        let longest = context.now.advanced(byMilliseconds: Self.longestQuietMilliseconds)
        turn.quietUntil = min(deadline ?? longest, longest)
        return deadline
    }

    /// The time of the next turn without any event; `nil` for none.
    public var nextDeadline: MonotonicTime? {
        let hasWork =
            connections.hasWork || commits.hasWork || walks.hasWork
            || bans.isSearching || userDisconnects.hasWork
            || subscriptions.hasUnfinished || !rechecks.isEmpty || committed.count > 0
            || system.isPublishing
            || (endedSessions.hasWork && !commits.holdsMessages)
            || (!handOvers.isEmpty && !commits.isBacklogFull)
        guard !hasWork else { return context.now }
        return MonotonicTime.earliest(
            MonotonicTime.earliest(connections.nextDeadline, sessions.nextExpiry),
            MonotonicTime.earliest(
                MonotonicTime.earliest(nextFollowerDeadline, dropReports.deadline),
                MonotonicTime.earliest(
                    MonotonicTime.earliest(
                        system.deadline,
                        expiries.deadline(at: context.now, wallClockMs: context.wallClockMs)),
                    MonotonicTime.earliest(
                        delayedWills.nextDeadline,
                        MonotonicTime.earliest(logins.nextDeadline, drain.deadline)))))
    }

    private var isPublishing: Bool {
        (agenda.isStirred || agenda.mayPublish) && followers.isPublishing(self)
    }

    private var nextFollowerDeadline: MonotonicTime? {
        if agenda.isStirred || agenda.mayPublish {
            agenda.due = followers.nextDeadline(self)
            // Only now: to look at themselves stirs the features, too.
            agenda.isStirred = false
        }
        return agenda.due
    }

    // MARK: Timers

    /// Handles expired timers: CONNECT deadlines, ends of tokens and session expiry at once, keep alives after a
    /// last read of the socket. Timers beyond the bound are left to the next turn.
    private mutating func expireTimers() {
        var left = Self.timersPerTurn
        while left > 0, let handle = connections.popExpired(now: context.now) {
            connectionTimerFired(handle)
            left -= 1
        }
        while left > 0,
            let handle = logins.popExpired(now: context.now, wallClockMs: context.wallClockMs)
        {
            if connections.isLive(handle) { end(handle, .tokenExpired) }
            left -= 1
        }
        while left > 0, let session = sessions.popExpired(now: context.now) {
            expire(session)
            left -= 1
        }
        if expiries.mustSweep(at: context.now) { removeExpired() }
        publishDueSystemTopics()
        reportDrops()
        if agenda.takeDue(at: context.now) { followers.run(&self) }
        closeEndingWithinBudget()
    }

    /// Removes what has expired, and has clients go on that wait for nothing else.
    private mutating func removeExpired() {
        sweepExpired()
        for session in expiries.takeStarved() where sessions.isCurrent(session) {
            pump(session.index)
        }
    }

    private mutating func connectionTimerFired(_ handle: Handle) {
        if connections[handle].machine.isAwaitingConnect {
            // This CONNECT arrived in time and waits for the store.
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
        // Else the CONNECT arrived in time, and the broker delays it.
    }

    /// Closes a connection with expired keep alive, unless the last read brought a packet.
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
    /// The earlier of two optional times.
    package static func earliest(_ one: Self?, _ other: Self?) -> Self? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }
}
