import Authorization
import BrokerAPI
import BrokerCore
import MQTTCore
import Store
import Structures

/// The features of a shard: their state, and what each does when the shard tells of something.
///
/// This is the only place that knows all of them. Each keeps its state in the types of its folder;
/// its flows are methods there. A feature that is told of something new is added to the hook here.
final class Features: Followers {
    let agenda = FollowerAgenda()
    var requests = AdminRequests()
    var groups = PublishGroups()
    var publishKeys: PublishKeys
    var receipts: Receipts
    var scheduled: ScheduledMessages
    var collapse: CollapseIndex
    var tagged: TaggedClients
    var pushes = Pushes()
    var reports: ClientReports
    var devices: Devices
    var wakes: OwedWakes
    var wakeRules: WakeRules
    var quietMemo = QuietMemo()
    var wakeDemands = WakeDemands()
    var wakeCounters = WakeCounters()
    /// Devices whose badge has to be looked at, each once.
    var notedBadges: [Handle] = []
    /// Operators who wait for the end of a notification, by the place of its device.
    var trials: [UInt32: Reply<WakeTrial?>] = [:]

    /// What a start has read and not placed yet.
    var restoring = RestoringFacts()

    init(limits: BrokerLimits, hash: KeyedHash, now: MonotonicTime) {
        publishKeys = PublishKeys(hash: hash)
        receipts = Receipts(hash: hash)
        scheduled = ScheduledMessages(hash: hash)
        collapse = CollapseIndex(hash: hash)
        tagged = TaggedClients(hash: hash)
        reports = ClientReports(hash: hash)
        devices = Devices(hash: hash)
        wakes = OwedWakes(now: now)
        wakeRules = WakeRules(limits.wakeRules)
    }

    // MARK: Queue positions

    func positionBegan(
        _ shard: inout Shard, _ message: RoutedMessage, _ session: UInt32, _ position: UInt64
    ) {
        if message.isPassedOn {
            shard.moveReceiver(message.follower, session, position)
        } else if message.follower != noIndex {
            shard.addReceiver(message, session, position)
        }
        // What a group gives to a member is neither replaced nor replaces.
        if message.mark == CollapseIndex.mark, message.group == noIndex {
            shard.addCollapsible(session, position)
        }
    }

    func endedAtOnce(
        _ shard: inout Shard, _ message: RoutedMessage, _ session: UInt32, _ end: QueueEnd
    ) {
        if message.isPassedOn {
            shard.endMoved(message.follower, session, end)
            followAnew(&shard, session)
        } else {
            shard.addEnded(message, session, end)
        }
    }

    func positionEnded(
        _ shard: inout Shard, _ session: UInt32, _ position: UInt64, _ end: QueueEnd
    ) {
        shard.endReceiver(session, position, end)
        shard.endCollapsible(session, position)
        followAnew(&shard, session)
    }

    /// Has a session followed after an end only for what is left.
    private func followAnew(_ shard: inout Shard, _ session: UInt32) {
        let number = shard.sessions[session].number
        let isFollowed = !receipts.freesSession(number) || collapse.holds(number)
        shard.sessions[session].follows = isFollowed
        if devices.count > 0 { shard.noteFetched(session) }
    }

    func positionMoved(_ number: UInt64, from old: UInt64, to new: UInt64) {
        agenda.isStirred = true
        receipts.move(number, from: old, to: new)
        collapse.move(number, from: old, to: new)
    }

    func follower(of position: FollowedPosition) -> UInt32 {
        receipts.find(session: position.number, position: position.position) ?? noIndex
    }

    func positionLeft(_ position: FollowedPosition, as name: FollowedPosition) {
        if let place = receipts.find(session: position.number, position: position.position) {
            receipts.move(place, session: name.number, position: name.position)
        }
    }

    func endedAtNobody(_ shard: inout Shard, _ follower: UInt32, _ end: QueueEnd) {
        shard.endReceiver(follower, end)
    }

    func queued(
        _ shard: inout Shard, _ message: inout RoutedMessage, _ session: UInt32,
        _ position: UInt64
    ) {
        shard.askForWake(&message, session, position)
    }

    func expired(_ shard: inout Shard, _ session: UInt32, _ position: UInt64) {
        shard.noteExpired(session, position)
    }

    // MARK: Clients and sessions

    func attached(_ shard: inout Shard, _ session: UInt32) {
        if devices.count > 0 { shard.setDevice(of: session) }
        if shard.sessions[session].isWatched { shard.cancelWakes(of: session) }
    }

    func connectionEnded(
        _ shard: inout Shard, _ connection: Connection, _ reason: CloseReason
    ) {
        shard.countLoss(of: connection, reason)
    }

    func detached(_ shard: inout Shard, _ session: UInt32) { shard.resumeWakes(of: session) }

    func sessionEnds(_ shard: inout Shard, _ session: UInt32) {
        var next = shard.firstDevice(for: session)
        while let device = next {
            next = shard.nextDevice(after: device, for: session)
            shard.endWake(of: device)
        }
    }

    func sessionEnded(_ shard: inout Shard, _ session: UInt32, leavesQueue: Bool) {
        if !leavesQueue { receipts.sessionEnded(shard.sessions[session].number) }
        shard.endCollapsibles(of: session)
    }

    func queueEnded(_ number: UInt64) {
        agenda.isStirred = true
        receipts.sessionEnded(number)
    }

    // MARK: Messages of clients

    func takes(_ topic: UnsafeRawBufferPointer) -> Bool { DeviceReader.isTopic(topic) }

    func take(_ shard: inout Shard, _ payload: UnsafeRawBufferPointer, from session: UInt32) {
        shard.takeRegistration(payload, from: session)
    }

    var readPrefix: StaticString { ReportReader.topicPrefix }

    func read(
        _ shard: inout Shard, _ topic: UnsafeRawBufferPointer,
        _ payload: UnsafeRawBufferPointer, from session: UInt32
    ) {
        shard.takeReport(topic, payload, from: session)
    }

    // MARK: The turn

    func isPublishing(_ shard: borrowing Shard) -> Bool {
        groups.isWaiting || shard.arePushesDue
    }

    func publish(_ shard: inout Shard) {
        shard.publishGroups()
        shard.continuePushes()
    }

    func run(_ shard: inout Shard) {
        shard.clearNotedBadges()
        shard.fireWakeTimers()
        shard.dropPublishKeys()
        shard.endAndDropReceipts()
        shard.collectDue()
        while shard.removeEndedPush(forRoom: false) {}
        shard.removeCollapseOrphans()
    }

    func settle(_ shard: inout Shard) {
        shard.answerReceiptEvents()
        shard.feedWakes()
    }

    func nextDeadline(_ shard: borrowing Shard) -> MonotonicTime? {
        agenda.mayPublish = groups.isWaiting || pushes.nextMs != nil
        agenda.maySettle =
            receipts.events.isAwaited && receipts.events.count > 0 || wakes.isListed
        let hasWork =
            requests.hasWork || publishKeys.hasWork(limit: shard.context.limits.idempotencyKeys)
            || receipts.hasWork(limit: shard.context.limits.receipts) || collapse.hasOrphans
            || wakes.hasMore || !notedBadges.isEmpty
        guard !hasWork else { return shard.context.now }
        return MonotonicTime.earliest(
            MonotonicTime.earliest(receipts.deadline, shard.scheduledDue),
            MonotonicTime.earliest(
                MonotonicTime.earliest(wakes.nextDeadline, shard.pushesDue), shard.groupsDue))
    }

    func committed(_ number: UInt64) {
        agenda.isStirred = true
        switch Awaited(number) {
        case .reply(let number): requests.committed(number)
        case .group(let number): groups.committed(number)
        }
    }

    func take(_ shard: inout Shard, _ slice: QueueSlice, tag: UInt64) {
        agenda.isStirred = true
        switch FeatureRead(tag) {
        case .question(let number): requests.answer(number, slice)
        case .wake(let device): shard.takeWakeSlice(slice, device)
        }
    }

    var awaitsMatch: Bool { groups.isWaiting }
    var awaitsReceivers: Bool { requests.awaitsReceivers }

    // MARK: The whole

    func finishRestoring(_ shard: inout Shard) {
        receipts.finishRestoring()
        restoring = RestoringFacts()
        shard.restoreWakes()
    }

    func add(to figures: inout BrokerFigures, _ shard: borrowing Shard) {
        figures.features =
            publishKeys.figures + scheduled.figures + collapse.figures + pushes.figures
            + tagged.figures + receipts.figures + reports.figures
        figures.reportedGrowth = reports.growth
        figures.lostConnections = reports.lostConnections
        figures.devices = devices.count
        figures.deviceBytes = devices.bytes + wakes.bytes
        figures.wakesOwed = wakes.count
        figures.deviceRefusals = wakeCounters.refusals
        figures.wakeMessages = wakeCounters.messages
        figures.wakes = wakeCounters.ends
    }
}

extension StoredTable {
    /// The tables of what features keep. Their numbers are part of the store's format and are never
    /// used again. A start hands facts back by rising number, so a table's number is higher than those
    /// of the tables that it needs.
    static let all: [StoredTable] = [
        .sequences, .publishKeys, .receiptBounds, .receipts, .scheduled, .collapsible, .tags,
        .pushes,
        .devices, .woken, .sessionTerms,
    ]

    /// What the kernel itself keeps of sessions of MQTT 5.0.
    private static let sessionTerms = StoredTable(
        .sessionTerms,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            try shard.restore(terms: fact)
        })
}
