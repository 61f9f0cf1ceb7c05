import BrokerAPI
import BrokerCore
import MQTTCore
import Store
import Structures

/// When a phone is woken.
///
/// A wake is owed for a session while a stored message that asks for one waits beyond the position up
/// to which the client's device has been woken, and the client is offline or does not answer. Only
/// that position is stored, so a crash may repeat a wake and never loses one.
extension Shard {
    /// Timers of wakes handled in a turn.
    private static var timersPerTurn: Int { 1_000 }
    /// The most bytes of a topic, and of a payload whose fields go into the notification, that are
    /// kept for it.
    private static var mostTopicBytes: Int { 512 }
    private static var mostPayloadBytes: Int { 4_096 }

    // MARK: Messages

    /// Notes a queued message, which may wake the session's devices.
    mutating func askForWake(
        _ delivery: inout RoutedMessage, _ session: UInt32, _ position: UInt64
    ) {
        let message = delivery.message
        guard message.qos != .atMostOnce else { return }
        let choice =
            WakeChoice(memo: delivery.memo)
            ?? features.wakeRules.choice(for: message.topic, message.wakeRequest)
        delivery.memo = choice.memo
        guard let kind = choice.kind else { return }
        var next = firstDevice(for: session)
        while let device = next {
            next = nextDevice(after: device, for: session)
            guard !features.devices[device].isSetAside, features.devices.takes(kind, device) else {
                continue
            }
            guard !isDropped(choice, device) else {
                noteDropped(device, session, position)
                continue
            }
            askForWake(delivery, session, position, device, choice, kind)
        }
    }

    private mutating func askForWake(
        _ delivery: RoutedMessage, _ session: UInt32, _ position: UInt64, _ device: UInt32,
        _ choice: WakeChoice, _ kind: WakeKind
    ) {
        let message = delivery.message
        context.budget.spend(WorkBudget.wake)
        features.wakeCounters.asked += 1
        let isNew = features.devices[device].owed == noIndex || stopClearing(device)
        let wake = owe(device)
        features.wakes[wake].target = position + 1
        features.wakes[wake].ticket = delivery.ticket
        let key = delivery.mark == CollapseIndex.mark ? features.collapse.current.key : nil
        if kind.isCall { noteCall(wake) }
        ask(wake, message.topic, message.payload, choice, kind, key, message.expiresAtMs)
        if isNew {
            schedule(wake, of: session)
        } else {
            releaseIfLoud(wake, session)
            features.wakeCounters.merged += 1
        }
    }

    /// The wake that a device is owed.
    mutating func owe(_ device: UInt32) -> UInt32 {
        if features.devices[device].owed == noIndex {
            features.devices[device].owed = features.wakes.add(device)
        }
        return features.devices[device].owed
    }

    /// Makes a message the newest one that asks for a wake.
    mutating func ask(
        _ wake: UInt32, _ topic: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer,
        _ choice: WakeChoice, _ kind: WakeKind, _ key: UInt128?, _ expiresAtMs: Int64
    ) {
        let keepsPayload =
            choice.includesFields && payload.count <= Self.mostPayloadBytes
            && features.devices.bytes + features.wakes.bytes + payload.count
                <= context.limits.deviceBytes
        note(wake, expiresAtMs)
        // One that may be told now keeps its name, so that it is not held with this one.
        guard features.wakes[wake].count == 1 || takesName(choice.rule, kind, of: wake) else {
            return
        }
        features.wakes.setMessage(
            wake, topic: UnsafeRawBufferPointer(rebasing: topic.prefix(Self.mostTopicBytes)),
            payload: keepsPayload ? payload : UnsafeRawBufferPointer(start: nil, count: 0),
            pool: pool)
        features.wakes[wake].kind = kind
        features.wakes[wake].rule = choice.rule
        features.wakes[wake].collapse =
            key.map { UInt64(truncatingIfNeeded: $0) } ?? WakeNames.collapse(topic)
    }

    /// Counts a message that asks for a wake.
    mutating func note(_ wake: UInt32, _ expiresAtMs: Int64) {
        let isFirst = features.wakes[wake].count == 0
        features.wakes[wake].count = max(1, features.wakes[wake].count &+ 1)
        if isFirst {
            features.wakes[wake].expiresAtMs = expiresAtMs
        } else if features.wakes[wake].expiresAtMs != 0 {
            features.wakes[wake].expiresAtMs =
                expiresAtMs == 0 ? 0 : max(features.wakes[wake].expiresAtMs, expiresAtMs)
        }
    }

    /// Looks at what waits for a client whose device has been registered or restored.
    mutating func examineQueue(of session: UInt32, _ device: UInt32) {
        guard owesWake(device, session) else { return }
        let wake = owe(device)
        features.wakes[wake].needsReading = true
        features.wakes[wake].next = cursor(of: device, session)
        features.wakes[wake].target = sessions[session].outbound.end
        // What an operator tries comes first, and goes on with this when it ends.
        if features.wakes[wake].purpose == .messages { schedule(wake, of: session) }
    }

    // MARK: Times

    /// Has an owed wake wait until it is due.
    private mutating func schedule(_ wake: UInt32, of session: UInt32) {
        guard sessions[session].connection == nil else {
            watch(wake)
            return
        }
        wait(wake, until: dueTime(of: session))
    }

    /// Looks after a while whether the connected client has answered.
    private mutating func watch(_ wake: UInt32) {
        features.wakes[wake].seen = features.wakes[wake].target
        features.wakes.wait(
            wake, .watching,
            until: context.now.advanced(byMilliseconds: context.limits.wakeUnansweredMilliseconds),
            key: features.devices.handle(of: features.wakes[wake].device).packed)
    }

    /// Has a wake wait until a time, and as long as the one before it is young.
    mutating func wait(_ wake: UInt32, until time: MonotonicTime) {
        let device = features.wakes[wake].device
        // By the wall clock, since the time is kept across restarts; a clock that was set back
        // delays nothing by more than the interval.
        let interval = Int64(clamping: context.limits.wakeMergeMilliseconds)
        let last = features.devices[device].woken.atMs
        let age = context.wallClockMs.subtractingReportingOverflow(last).partialValue
        let left = last == 0 ? 0 : interval - min(max(0, age), interval)
        let due = max(time, context.now.advanced(byMilliseconds: UInt64(left)))
        guard due > context.now else {
            makeReady(wake)
            return
        }
        features.wakes.wait(
            wake, .waiting, until: due, key: features.devices.handle(of: device).packed)
    }

    /// The time from which on an offline client is woken: at once after DISCONNECT; else it may come
    /// back by itself for a while.
    private func dueTime(of session: UInt32) -> MonotonicTime {
        guard sessions[session].lastCloseReason != .disconnect else { return context.now }
        let window = Int64(clamping: context.limits.wakeReconnectMilliseconds)
        let left =
            sessions[session].sinceMs.addingReportingOverflow(window).partialValue
            - context.wallClockMs
        return context.now.advanced(byMilliseconds: UInt64(min(max(0, left), window)))
    }

    /// The client is connected: what it is owed reaches it now.
    mutating func cancelWakes(of session: UInt32) {
        var next = firstDevice(for: session)
        while let device = next {
            next = nextDevice(after: device, for: session)
            cancelWake(of: device)
        }
    }

    private mutating func cancelWake(of device: UInt32) {
        guard features.devices[device].owed != noIndex else { return }
        let wake = features.devices[device].owed
        guard features.wakes[wake].purpose == .messages else { return }
        if features.wakes[wake].state == .sent { return withdraw(wake) }
        if features.wakes[wake].state != .watching { features.wakeCounters.cancelled += 1 }
        watch(wake)
    }

    /// Lists a wake for its sender.
    mutating func makeReady(_ wake: UInt32) {
        features.wakes.makeReady(wake, features.devices.lane(of: features.wakes[wake].device))
    }

    /// Tells the sender that it need not send what it has not sent yet. Its answer says what became
    /// of the wake; until then the wake is in no other hands.
    private mutating func withdraw(_ wake: UInt32) {
        guard !features.wakes[wake].isWithdrawn else { return }
        features.wakes[wake].isWithdrawn = true
        let device = features.wakes[wake].device
        features.wakeDemands.withdraw(features.devices[device].kind, handOut(of: wake))
    }

    /// The hand-out of a wake that its sender has.
    func handOut(of wake: UInt32) -> HandOut {
        HandOut(
            device: features.devices.handle(of: features.wakes[wake].device).packed,
            number: features.wakes[wake].handOut)
    }

    /// The client is offline: what it has not acknowledged wakes it.
    mutating func resumeWakes(of session: UInt32) {
        var next = firstDevice(for: session)
        while let device = next {
            next = nextDevice(after: device, for: session)
            resumeWake(of: device, session)
        }
    }

    private mutating func resumeWake(of device: UInt32, _ session: UInt32) {
        guard features.devices[device].owed != noIndex else { return }
        let wake = features.devices[device].owed
        guard features.wakes[wake].state != .sent, features.wakes[wake].purpose == .messages else {
            return
        }
        let queue = sessions[session].outbound
        guard queue.holdsMessages(below: features.wakes[wake].target) else {
            endWake(of: device)
            return
        }
        features.wakes[wake].count = min(features.wakes[wake].count, queue.waiting + queue.inFlight)
        schedule(wake, of: session)
    }

    /// Ends what a device is owed.
    mutating func endWake(of device: UInt32) {
        let wake = features.devices[device].owed
        guard wake != noIndex else { return }
        if features.wakes[wake].purpose == .trial {
            answerTrial(of: device, .later, "it ended without an answer")
        }
        if features.wakes[wake].state == .sent { withdraw(wake) }
        features.wakes.remove(wake, pool: pool)
        features.devices[device].owed = noIndex
        clearBadge(of: device)
    }

    /// Handles wakes whose time has come.
    mutating func fireWakeTimers() {
        var left = Self.timersPerTurn
        while left > 0, let key = features.wakes.popExpired(now: context.now) {
            left -= 1
            let handle = Handle(packed: key)
            guard features.devices.isCurrent(handle), features.devices[handle.index].owed != noIndex
            else { continue }
            let wake = features.devices[handle.index].owed
            features.wakes.timerFired(wake)
            switch features.wakes[wake].state {
            case .watching: judgeWatched(wake)
            case .waiting: if !holdBack(wake) { makeReady(wake) }
            case .sent:
                features.wakeCounters.unanswered += 1
                withdraw(wake)
                guard features.wakes[wake].purpose != .trial else {
                    answerTrial(of: handle.index, .later, "it ended without an answer")
                    endTrial(wake)
                    continue
                }
                if features.wakes[wake].purpose == .messages { noteUntold(wake) }
                makeReady(wake)
            case .ready, .reading: continue
            }
        }
    }

    /// Wakes a connected client that has not acknowledged what was delivered: its connection may be
    /// dead.
    private mutating func judgeWatched(_ wake: UInt32) {
        let device = features.wakes[wake].device
        guard let session = session(for: device) else { return endWake(of: device) }
        let queue = sessions[session].outbound
        if queue.holdsMessages(below: features.wakes[wake].seen) {
            wait(wake, until: context.now)
        } else if queue.holdsMessages(below: features.wakes[wake].target) {
            watch(wake)
        } else {
            endWake(of: device)
        }
    }

    /// Has a wake go on that has been tried: watched while the client is connected, else due after a
    /// pause.
    mutating func continueWake(_ wake: UInt32, _ session: UInt32, after milliseconds: UInt64) {
        guard sessions[session].connection == nil else {
            watch(wake)
            return
        }
        wait(wake, until: context.now.advanced(byMilliseconds: milliseconds))
    }

    // MARK: The start

    /// After a start: devices, not queues, say who may be owed a wake.
    ///
    /// The process before may have been killed with a notification on its way, of which nothing is
    /// stored. So what is owed at the start is told when such a one is older than the merging
    /// interval.
    mutating func restoreWakes() {
        for device in 0..<features.devices.endIndex where features.devices[device].generation != 0 {
            guard let session = session(for: device) else { continue }
            followBadge(of: device, session)
            guard owesWake(device, session) else { continue }
            features.devices[device].woken.atMs = context.wallClockMs
            examineQueue(of: session, device)
        }
    }

    /// After a change of the configuration.
    public mutating func adoptWakeRules() {
        features.wakeRules = WakeRules(context.limits.wakeRules)
        features.quietMemo.removeAll()
    }
}
