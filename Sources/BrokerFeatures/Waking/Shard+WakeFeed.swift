import BrokerAPI
import BrokerCore
import MQTTCore
import Store
import Structures

/// Hands owed wakes to their senders, and takes the answers.
extension Shard {
    /// The most wakes of one turn, and entries of a list that it looks at.
    private static var wakesPerTurn: Int { 32 }
    private static var looksPerTurn: Int { 4_096 }
    /// Wakes of one app after which that of another comes, if one is ready.
    private static var wakesPerLane: Int { 4 }
    /// Queues that are read for wakes at the same time.
    private static var mostReading: Int { 16 }
    /// A wake that its sender does not answer for so long is withdrawn and handed out again. A sender
    /// answers or gives back within half of it, so only an answer that was lost takes so long.
    private static var answerMilliseconds: UInt64 { 300_000 }
    /// Attempts after which a device is set aside that the service calls gone since a time before
    /// its registration.
    private static var mostStaleAnswers: UInt8 { 5 }
    /// Bounds of the growing pause between attempts.
    private static var firstPauseMilliseconds: UInt64 { 1_000 }
    private static var longestPauseMilliseconds: UInt64 { 600_000 }
    /// A notification is kept by its service for at most a day.
    private static var mostSeconds: Int64 { 86_400 }

    // MARK: Handing out

    /// Keeps a sender's demand until wakes of this kind of device are due.
    public mutating func nextWakes(_ kind: Device.Kind, _ demand: WakeDemand) {
        features.wakeDemands.set(kind, demand) { features.devices.find(bundle: $0) }
    }

    /// Answers the demands of senders as far as wakes are due.
    mutating func feedWakes() {
        features.wakes.hasMore = false
        for kind in Device.Kind.allCases where features.wakes.isListed(kind) {
            guard let most = features.wakeDemands.most(kind) else { continue }
            let list = takeWakes(kind, most: min(most, Self.wakesPerTurn))
            if !list.isEmpty { features.wakeDemands.answer(kind, list) }
        }
    }

    /// Takes wakes of all lanes in turn, of each a few.
    private mutating func takeWakes(_ kind: Device.Kind, most: Int) -> [Wake] {
        var list: [Wake] = []
        var looks = 0
        /// The first of the lanes that gave nothing one after the other.
        var firstIdle: UInt32?
        while list.count < most, let lane = features.wakes.firstLane(kind), lane != firstIdle {
            guard looks < Self.looksPerTurn else {
                features.wakes.hasMore = true
                break
            }
            looks += 1
            let key = features.wakes.key(ofLane: lane)
            let place = features.wakes.first(ofLane: lane)
            // Its message, or the reading of its queue, is not done: an event of the store says so.
            guard features.wakeDemands.most(of: key) > 0,
                commits.areCommitted(through: features.wakes[place].ticket),
                !features.wakes[place].needsReading || features.wakes.reading < Self.mostReading
            else {
                firstIdle = firstIdle ?? lane
                features.wakes.passTurn(kind)
                continue
            }
            firstIdle = nil
            if let wake = makeWake(place) {
                features.wakeDemands.count(key)
                list.append(wake)
            }
            if looks % Self.wakesPerLane == 0, features.wakes.firstLane(kind) == lane {
                features.wakes.passTurn(kind)
            }
        }
        context.budget.spend(WorkBudget.wake * looks)
        return list
    }

    /// Hands a wake out; `nil` when it is not owed any more, or its queue must be read before.
    private mutating func makeWake(_ place: UInt32) -> Wake? {
        let device = features.wakes[place].device
        let session = session(for: device)
        switch features.wakes[place].purpose {
        case .trial: break
        case .badge:
            guard mustClearBadge(of: device) else {
                endWake(of: device)
                return nil
            }
        case .messages:
            guard let session, !features.devices[device].isSetAside else {
                endWake(of: device)
                return nil
            }
            guard mustWake(place, session) else { return nil }
            noteBadge(of: place)
        }
        if features.wakes[place].purpose != .trial {
            features.wakes[place].seen = features.wakes[place].target
            features.wakes[place].told = features.wakes[place].count
            features.wakes[place].attempts = min(30, features.wakes[place].attempts + 1)
        }
        features.wakes[place].isAlertOfSender =
            features.wakes[place].purpose == .messages && features.wakes[place].kind == .alert
        features.wakes.handOut(place)
        features.wakes.wait(
            place, .sent, until: context.now.advanced(byMilliseconds: Self.answerMilliseconds),
            key: features.devices.handle(of: device).packed)
        return wake(place, number: session.map { sessions[$0].number } ?? 0)
    }

    /// True when a wake that is ready is still owed and can be told.
    private mutating func mustWake(_ place: UInt32, _ session: UInt32) -> Bool {
        let device = features.wakes[place].device
        guard sessions[session].outbound.holdsMessages(below: features.wakes[place].target) else {
            features.wakeCounters.cancelled += 1
            endWake(of: device)
            return false
        }
        skipLateCall(place)
        guard !features.wakes[place].needsReading else {
            beginReading(place, of: session)
            return false
        }
        guard
            features.wakes[place].expiresAtMs == 0
                || features.wakes[place].expiresAtMs > context.wallClockMs
        else {
            features.wakeCounters.expired += 1
            endWake(of: device)
            return false
        }
        return !holdBack(place)
    }

    private func wake(_ place: UInt32, number: UInt64) -> Wake {
        let owed = features.wakes[place]
        let device = features.devices.device(owed.device)
        let told = session(for: owed.device).map { toldAndWaiting(owed.device, $0) } ?? 0
        let waiting = session(for: owed.device).map {
            min(told &+ owed.count, sessions[$0].outbound.waiting + sessions[$0].outbound.inFlight)
        }
        let nowS = context.wallClockMs / 1_000
        let expiry = owed.expiresAtMs == 0 ? Int64.max : owed.expiresAtMs / 1_000
        let isOfMessages = owed.purpose == .messages
        let rule = isOfMessages ? owed.rule.flatMap { features.wakeRules[$0] } : nil
        var wake = Wake(
            handOut: handOut(of: place),
            clientID: features.devices.clientID(of: owed.device), device: device,
            kind: owed.purpose == .badge ? .badge : owed.kind, rule: rule,
            topic: String(decoding: owed.topic.array, as: UTF8.self),
            payload: owed.payload.array,
            waiting: owed.purpose == .badge ? 0 : Int(max(1, waiting ?? 0)),
            collapseID: WakeNames.collapseID(owed.purpose == .badge ? 0 : owed.collapse),
            notificationID: WakeNames.notification(
                device.token, session: number, position: namePosition(of: owed),
                isOfMessages: isOfMessages,
                at: owed.purpose == .trial ? context.wallClockMs : 0),
            expiresAt: min(expiry, nowS + (rule?.expiresInSeconds ?? Self.mostSeconds)))
        wake.attempt = Int(owed.attempts) - (owed.purpose == .trial ? 0 : 1)
        return wake
    }

    /// The position of the queue by which a notification is named. A badge is cleared when the queue is
    /// empty, and shown again for a later message only: so the queue's end tells one clearing from the
    /// next, and is the same for each attempt.
    private func namePosition(of owed: OwedWakes.Owed) -> UInt64 {
        guard owed.purpose == .badge, let session = session(for: owed.device) else {
            return owed.target
        }
        return sessions[session].outbound.end
    }

    // MARK: Answers

    /// Takes the answers of a sender.
    public mutating func answerWakes(_ answers: [WakeAnswer]) {
        for answer in answers {
            let handle = Handle(packed: answer.handOut.device)
            guard features.devices.isCurrent(handle),
                features.devices[handle.index].owed != noIndex
            else { continue }
            // A late answer finds a wake that waits again, or that is handed out again.
            let wake = features.devices[handle.index].owed
            guard features.wakes[wake].state == .sent,
                features.wakes[wake].handOut == answer.handOut.number
            else { continue }
            take(answer, handle.index)
        }
        context.budget.spend(WorkBudget.wake * answers.count)
    }

    private mutating func take(_ answer: WakeAnswer, _ device: UInt32) {
        let wake = features.devices[device].owed
        let outcome = effect(of: answer.outcome, on: device)
        let result = outcome.result
        features.wakeCounters.results.add(result)
        // A badge that is cleared tells nobody of a message.
        if outcome != .givenBack, features.wakes[wake].purpose != .badge || result == .badDevice {
            features.devices.answered(device, result, answer.reason, atMs: context.wallClockMs)
        }
        if features.wakes[wake].purpose == .trial {
            answerTrial(of: device, result == .givenBack ? .later : result, answer.reason)
        }
        switch outcome {
        case .accepted: finish(wake, isTold: true)
        case .refused: finish(wake, isTold: false)
        case .gone:
            context.notices.appendBounded(
                .deviceGone(features.devices.reported(device), reason: answer.reason))
            forgetDevice(device)
        case .badDevice:
            context.notices.appendBounded(
                .deviceSetAside(features.devices.reported(device), reason: answer.reason))
            setAside(device)
        case .later(let milliseconds): retry(wake, milliseconds: milliseconds)
        case .givenBack: giveBack(wake)
        }
    }

    /// What an answer means for a device. The time at which it was gone may lie before its
    /// registration: the service may have that wrong for a while, and is asked a few times.
    private func effect(
        of outcome: WakeAnswer.Outcome, on device: UInt32
    ) -> WakeAnswer.Outcome {
        guard case .gone(let atMs?) = outcome, atMs < features.devices[device].registeredMs else {
            return outcome
        }
        let wake = features.devices[device].owed
        return features.wakes[wake].attempts < Self.mostStaleAnswers
            ? .later(milliseconds: 0) : .badDevice
    }

    /// Has a wake go on that its sender did not send: it was no attempt.
    private mutating func giveBack(_ wake: UInt32) {
        let device = features.wakes[wake].device
        guard features.wakes[wake].purpose != .trial else {
            endTrial(wake)
            return
        }
        features.wakes[wake].attempts -= min(1, features.wakes[wake].attempts)
        guard features.wakes[wake].purpose == .messages else {
            return continueClearing(wake, after: 0)
        }
        guard let session = session(for: device) else { return endWake(of: device) }
        noteUntold(wake)
        // It comes after the others, so that one that takes the service down stops nobody.
        continueWake(wake, session, after: 0)
    }

    /// Ends a wake that has been told; messages that came meanwhile wait for the next.
    private mutating func finish(_ wake: UInt32, isTold: Bool) {
        let device = features.wakes[wake].device
        switch features.wakes[wake].purpose {
        case .messages: break
        case .trial:
            if isTold { features.devices[device].woken.atMs = context.wallClockMs }
            return endTrial(wake)
        case .badge:
            noteBadgeCleared(device)
            // None of the attempts was one of the messages that came meanwhile.
            features.wakes[wake].attempts = 0
            return endTrial(wake)
        }
        guard let session = session(for: device) else { return endWake(of: device) }
        if isTold, features.wakes[wake].isAlertOfSender { countAlert(of: device) }
        // Behind the newest that asked none is to be told, and those that were dropped never are.
        let hasMore = features.wakes[wake].target > features.wakes[wake].seen
        setWoken(
            device, session,
            below: hasMore || !features.wakes[wake].hasDropped
                ? features.wakes[wake].seen : sessions[session].outbound.end,
            told: isTold ? max(1, features.wakes[wake].told) : 0)
        guard hasMore,
            sessions[session].outbound.holdsMessages(below: features.wakes[wake].target)
        else { return endWake(of: device) }
        features.wakes[wake].count -= min(features.wakes[wake].count, features.wakes[wake].told)
        features.wakes[wake].attempts = 0
        continueWake(wake, session, after: 0)
    }

    /// Has a wake wait for a further attempt.
    private mutating func retry(_ wake: UInt32, milliseconds: UInt64) {
        let device = features.wakes[wake].device
        let grown = Self.firstPauseMilliseconds << UInt64(max(1, features.wakes[wake].attempts) - 1)
        let pause = max(min(grown, Self.longestPauseMilliseconds), milliseconds)
        switch features.wakes[wake].purpose {
        case .messages: break
        case .trial: return endTrial(wake, pause: min(pause, Self.longestPauseMilliseconds))
        case .badge:
            return continueClearing(wake, after: min(pause, Self.longestPauseMilliseconds))
        }
        guard let session = session(for: device) else { return endWake(of: device) }
        noteUntold(wake)
        continueWake(wake, session, after: min(pause, Self.longestPauseMilliseconds))
    }

    /// Sets aside a device that the push service refuses, until it registers again.
    private mutating func setAside(_ device: UInt32) {
        features.devices[device].isSetAside = true
        endWake(of: device)
        features.devices[device].woken = StoredDevice.Woken()
        commits.records.device(features.devices.stored(device))
    }
}
