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
    /// Queues that are read for wakes at the same time.
    private static var mostReading: Int { 16 }
    /// A wake that its sender does not answer for so long is handed out again. It is longer than a
    /// sender needs for all its attempts.
    private static var answerMilliseconds: UInt64 { 180_000 }
    /// Bounds of the growing pause between attempts.
    private static var firstPauseMilliseconds: UInt64 { 1_000 }
    private static var longestPauseMilliseconds: UInt64 { 600_000 }
    /// A notification is kept by its service for at most a day.
    private static var mostSeconds: Int64 { 86_400 }

    // MARK: Handing out

    /// Keeps a sender's request until wakes of this kind of device are due.
    public mutating func nextWakes(
        _ kind: Device.Kind, most: Int, _ take: @escaping @Sendable ([Wake]) -> Void
    ) {
        features.wakeRequests.set(kind, most: most, take)
    }

    /// Answers the requests of senders as far as wakes are due.
    mutating func feedWakes() {
        features.wakes.hasMore = false
        for kind in Device.Kind.allCases where features.wakes.listedCount(kind) > 0 {
            guard let most = features.wakeRequests.most(kind) else { continue }
            let list = takeWakes(kind, most: min(most, Self.wakesPerTurn))
            if !list.isEmpty { features.wakeRequests.take(kind)?(list) }
        }
    }

    private mutating func takeWakes(_ kind: Device.Kind, most: Int) -> [Wake] {
        var list: [Wake] = []
        var looks = 0
        while list.count < most, let place = features.wakes.firstListed(kind) {
            guard looks < Self.looksPerTurn else {
                features.wakes.hasMore = true
                break
            }
            looks += 1
            // Its message, or the reading of its queue, is not done: an event of the store says so.
            guard commits.areCommitted(through: features.wakes[place].ticket),
                !features.wakes[place].needsReading || features.wakes.reading < Self.mostReading
            else { break }
            guard let place = features.wakes.popReady(kind), let wake = makeWake(place) else {
                continue
            }
            list.append(wake)
        }
        context.budget.spend(WorkBudget.wake * looks)
        return list
    }

    /// Hands a wake out; `nil` when it is not owed any more, or its queue must be read before.
    private mutating func makeWake(_ place: UInt32) -> Wake? {
        let device = features.wakes[place].device
        let session = session(for: device)
        if !features.wakes[place].isTest {
            guard let session, !features.devices[device].isSetAside else {
                endWake(of: device)
                return nil
            }
            guard mustWake(place, session) else { return nil }
        }
        if !features.wakes[place].isTest {
            features.wakes[place].seen = features.wakes[place].target
            features.wakes[place].told = features.wakes[place].count
            features.wakes[place].attempts = min(30, features.wakes[place].attempts + 1)
            features.devices[device].lastWake = context.now
        }
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
        guard !features.wakes[place].needsReading else {
            readForWake(place, of: session)
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
        return true
    }

    private func wake(_ place: UInt32, number: UInt64) -> Wake {
        let owed = features.wakes[place]
        let device = features.devices.device(owed.device)
        let nowS = context.wallClockMs / 1_000
        let expiry = owed.expiresAtMs == 0 ? Int64.max : owed.expiresAtMs / 1_000
        return Wake(
            id: features.devices.handle(of: owed.device).packed,
            clientID: features.devices.clientIdentifier(of: owed.device), device: device,
            kind: owed.kind,
            rule: owed.rule.flatMap { features.wakeRules[$0] },
            topic: String(decoding: owed.topic.array, as: UTF8.self),
            payload: owed.payload.array, waiting: Int(max(1, owed.count)),
            collapseID: WakeNames.collapseID(owed.collapse),
            notificationID: WakeNames.notification(
                device.token, session: number, position: owed.target, isTest: owed.isTest,
                at: owed.isTest ? context.wallClockMs : 0),
            expiresAt: min(expiry, nowS + Self.mostSeconds))
    }

    // MARK: Answers

    /// Takes the answers of a sender.
    public mutating func answerWakes(_ answers: [WakeAnswer]) {
        for answer in answers {
            let handle = Handle(packed: answer.id)
            // A late answer finds no wake, or one that waits again and is repeated.
            guard features.devices.isCurrent(handle),
                features.devices[handle.index].owed != noIndex,
                features.wakes[features.devices[handle.index].owed].state == .sent
            else { continue }
            take(answer, handle.index)
        }
        context.budget.spend(WorkBudget.wake * answers.count)
    }

    private mutating func take(_ answer: WakeAnswer, _ device: UInt32) {
        let wake = features.devices[device].owed
        let result = answer.outcome.result
        features.wakeCounters.results.add(result)
        features.devices.answered(device, result, answer.reason, atMs: context.wallClockMs)
        if features.wakes[wake].isTest { answerTrial(of: device, result, answer.reason) }
        switch answer.outcome {
        case .accepted, .refused: finish(wake)
        case .gone(let atMs):
            guard (atMs ?? .max) >= features.devices[device].registeredMs else {
                retry(wake, milliseconds: 0)
                return
            }
            context.notices.appendBounded(
                .deviceGone(
                    clientIdentifier: features.devices[device].identifier.array,
                    reason: answer.reason))
            forgetDevice(device)
        case .badDevice:
            context.notices.appendBounded(
                .deviceSetAside(
                    clientIdentifier: features.devices[device].identifier.array,
                    reason: answer.reason))
            setAside(device)
        case .later(let milliseconds): retry(wake, milliseconds: milliseconds)
        }
    }

    /// Ends a wake that has been told; messages that came meanwhile wait for the next.
    private mutating func finish(_ wake: UInt32) {
        let device = features.wakes[wake].device
        guard !features.wakes[wake].isTest else {
            features.devices[device].lastWake = context.now
            endTrial(wake)
            return
        }
        guard let session = session(for: device) else { return endWake(of: device) }
        setWoken(device, session, below: features.wakes[wake].seen)
        guard features.wakes[wake].target > features.wakes[wake].seen,
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
        guard !features.wakes[wake].isTest else {
            endTrial(wake, pause: min(pause, Self.longestPauseMilliseconds))
            return
        }
        guard let session = session(for: device) else { return endWake(of: device) }
        // It told nothing, so the next attempt is not merged with it.
        features.devices[device].lastWake = nil
        continueWake(wake, session, after: min(pause, Self.longestPauseMilliseconds))
    }

    /// Sets aside a device whose token the push service does not know, until it registers again.
    private mutating func setAside(_ device: UInt32) {
        endWake(of: device)
        features.devices[device].isSetAside = true
        features.devices[device].woken = StoredDevice.Woken()
        commits.records.device(features.devices.stored(device))
    }
}
