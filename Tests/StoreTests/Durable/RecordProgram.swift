import HermesTesting

@testable import Store

/// Groups of records as a broker could submit them, drawn from a seed, and a model of each.
///
/// Each group sets the channel ``marker`` to its number, so that a restored store shows how many
/// groups it holds.
struct RecordProgram {
    static let marker = [UInt8]("marker".utf8)

    var random: SplitMix64
    /// Payloads are smaller than this size.
    var largestPayload = 400
    /// Also acknowledges positions that never existed or have ended.
    var finishesUnknown = true
    /// The number of groups drawn.
    private(set) var groupCount: UInt64 = 0
    /// The model after each group since the last ``resume(at:)``; the first is the one before any.
    private(set) var models: [StoreModel] = [StoreModel()]
    private var firstGroup: UInt64 = 0
    private var records: [StoreRecord] = []
    private var publishKeyCount: UInt64 = 0
    private var receiptCount: UInt64 = 0
    private var scheduledCount: UInt64 = 0
    private var pushCount: UInt64 = 0

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    var model: StoreModel { models[models.count - 1] }

    /// The model after so many groups.
    func model(after group: UInt64) -> StoreModel? {
        guard group >= firstGroup, group <= groupCount else { return nil }
        return models[Int(group - firstGroup)]
    }

    /// Continues from the model that a restart has found; later groups are lost.
    mutating func resume(at group: UInt64) {
        guard let model = model(after: group) else { preconditionFailure("group \(group)") }
        models = [model]
        firstGroup = group
        groupCount = group
    }

    /// Appends a group and its ticket.
    mutating func addGroup(to batch: inout WriteBatch) {
        records = []
        var model = model
        for _ in 0..<random.number(in: 1...5) { addSome(&model) }
        groupCount += 1
        add(.sequence(channel: Self.marker, number: groupCount), &model)
        for record in records { batch.append(record) }
        _ = batch.commit()
        models.append(model)
    }

    private mutating func add(_ record: StoreRecord, _ model: inout StoreModel) {
        records.append(record)
        // A message number is valid only within its group, so the group is applied to the model
        // before it.
        model = self.model
        model.apply(records)
    }

    private mutating func addSome(_ model: inout StoreModel) {
        let sessions = model.sessions.keys.sorted()
        guard let session = sessions.randomElement(using: &random),
            !(sessions.count < 8 && random.once(in: 20))
        else { return addSession(&model) }
        let queue = model.sessions[session]?.queue.keys.sorted() ?? []
        if model.sessions[session]?.hasEnded == true {
            if random.once(in: 6) {
                add(.sessionRemoved(session), &model)
            } else {
                finish(session, queue, &model)
            }
            return
        }
        switch random.number(in: 1...100) {
        case 1: add(random.once(in: 2) ? .sessionRemoved(session) : .sessionEnded(session), &model)
        case 2...4: add(.attached(session), &model)
        case 5...7:
            add(.detached(session, sinceMs: Int64(random.number(in: 1...1_000_000))), &model)
        case 8...11:
            add(
                .subscription(session, filter: text(5), qos: UInt8(random.number(in: 0...2))),
                &model)
        case 12...13: add(.subscriptionRemoved(session, filter: text(5)), &model)
        case 14...17:
            add(
                .inbound(session: session, packetIdentifier: UInt16(random.number(in: 1...9))),
                &model)
        case 18...21:
            add(
                .inboundRemoved(
                    session: session, packetIdentifier: UInt16(random.number(in: 1...9))),
                &model)
        case 22...24: addWill(session, &model)
        case 25: changeOthers(session, queue, &model)
        case 26: add(.willRemoved(session: session), &model)
        case 27...28: add(.retainedRemoved(topic: text(4)), &model)
        case 29: changeScheduled(&model)
        case 30: random.once(in: 2) ? addPublishKey(&model) : changeReceipts(session, &model)
        case 31...32: add(.sequence(channel: text(3), number: UInt64(groupCount + 1)), &model)
        case 33...35:
            let end = model.sessions[session]?.end ?? 0
            add(.horizon(session: session, position: end), &model)
        case 36...46: release(session, queue, &model)
        case 47...72: finish(session, queue, &model)
        default:
            publish(sessions.filter { model.sessions[$0]?.hasEnded == false }, &model)
        }
    }

    private mutating func addSession(_ model: inout StoreModel) {
        let number = model.progress.lastSession + UInt64(random.number(in: 1...2))
        add(
            .session(
                number, clientIdentifier: [UInt8]("client/\(number)".utf8),
                userName: random.once(in: 2) ? text(5) : nil), &model)
    }

    /// Mostly in order, sometimes not, sometimes unknown positions.
    private mutating func finish(
        _ session: UInt64, _ queue: [UInt64], _ model: inout StoreModel
    ) {
        let count = random.number(in: 0...12)
        for position in queue.prefix(count) {
            add(.finished(session: session, position: position), &model)
        }
        let queue = finishesUnknown ? queue : [UInt64](queue.dropFirst(count))
        guard let last = queue.last, random.once(in: 3) else { return }
        let position =
            random.once(in: 2) || !finishesUnknown
            ? queue.randomElement(using: &random) ?? last
            : UInt64(random.number(in: 0...Int(last)))
        add(.finished(session: session, position: position), &model)
    }

    private mutating func release(
        _ session: UInt64, _ queue: [UInt64], _ model: inout StoreModel
    ) {
        for position in queue.prefix(random.number(in: 0...4)) where random.once(in: 2) {
            add(.released(session: session, position: position), &model)
        }
        guard let position = queue.randomElement(using: &random) else { return }
        add(.released(session: session, position: position), &model)
    }

    private mutating func addWill(_ session: UInt64, _ model: inout StoreModel) {
        let number = addMessage(&model)
        add(.will(session: session, message: number), &model)
    }

    /// Buckets rise, and are dropped from the lowest on.
    private mutating func addPublishKey(_ model: inout StoreModel) {
        publishKeyCount += 1
        let number = publishKeyCount
        let bucket = 1 << 36 | number / 4
        if let first = model.publishKeys.first, random.once(in: 5) {
            let begin = min(bucket, first.bucket + UInt64(random.number(in: 0...2)))
            add(.publishKeysDropped(below: begin), &model)
        }
        func wide() -> UInt128 { UInt128(random.next()) << 64 | UInt128(number) }
        add(
            .publishKey(
                PublishKey(
                    key: wide(), digest: wide(), messageID: wide(), bucket: bucket,
                    matched: UInt32(number), online: .max, queued: 0,
                    dropped: UInt32(random.number(in: 0...9)))), &model)
    }

    /// Adds a scheduled message, or moves or ends one.
    private mutating func changeScheduled(_ model: inout StoreModel) {
        guard let number = model.scheduled.keys.min(), !random.once(in: 2) else {
            scheduledCount += 1
            add(
                .scheduled(
                    StoredScheduled(
                        number: scheduledCount, dueMs: Int64(scheduledCount) * 5,
                        expiresInMs: Int64(scheduledCount) * 3, messageID: text(9),
                        topic: text(4), payload: text(7), qos: UInt8(scheduledCount % 3),
                        retain: scheduledCount % 2 == 0, isFollowed: scheduledCount % 5 == 0)),
                &model)
            return
        }
        if random.once(in: 2) {
            add(.scheduledMoved(number, dueMs: Int64(number) * 7), &model)
        } else {
            add(.scheduledEnded(number), &model)
        }
    }

    private mutating func changeOthers(
        _ session: UInt64, _ queue: [UInt64], _ model: inout StoreModel
    ) {
        switch random.number(in: 1...4) {
        case 1: changeTags(&model)
        case 2: changePushes(&model)
        case 3: changeDevices(session, &model)
        default:
            guard let position = queue.randomElement(using: &random) else { return }
            guard !random.once(in: 3) else {
                return add(.collapsibleEnded(session: session, position: position), &model)
            }
            let sequences = (0..<random.number(in: 0...3)).map { UInt64($0) << 40 + position }
            add(
                .collapsible(
                    StoredCollapsible(
                        session: session, position: position, key: UInt128(position) << 70,
                        sequences: sequences)), &model)
        }
    }

    private mutating func changeTags(_ model: inout StoreModel) {
        let tag = StoredTag(clientIdentifier: text(5), tag: text(3))
        add(.tag(tag, isSet: !random.once(in: 3)), &model)
    }

    /// Registers, wakes or removes a device.
    private mutating func changeDevices(_ session: UInt64, _ model: inout StoreModel) {
        let client = text(3)
        guard !random.once(in: 4) else { return add(.deviceRemoved(client), &model) }
        guard random.once(in: 2) else {
            let woken = StoredDevice.Woken(
                session: session, position: UInt64(random.number(in: 1...9)))
            return add(.woken(client, woken), &model)
        }
        let user = random.once(in: 2) ? text(4) : nil
        add(
            .device(
                StoredDevice(
                    clientIdentifier: client, userName: user, token: text(9), bundle: text(5),
                    kind: 1, environment: 2, registeredMs: Int64(session) << 33,
                    isSetAside: random.once(in: 3))), &model)
    }

    /// Adds a push, or advances, ends or removes one.
    private mutating func changePushes(_ model: inout StoreModel) {
        let numbers = model.pushes.keys.sorted()
        guard let number = numbers.randomElement(using: &random),
            let push = model.pushes[number], !random.once(in: 3)
        else {
            pushCount += 1
            add(
                .push(
                    StoredPush(
                        number: pushCount, createdMs: Int64(pushCount) * 3,
                        dueMs: Int64(pushCount) * 5, expiresInMs: Int64(pushCount) * 7,
                        spreadMs: Int64(pushCount) * 11, pushID: text(9), topic: text(4),
                        payload: text(7), qos: UInt8(pushCount % 3),
                        isFollowed: pushCount % 2 == 0, target: text(8), seed: pushCount * 13)),
                &model)
            return
        }
        guard push.progress.endedMs == 0 else {
            return add(.pushRemoved(push.number), &model)
        }
        var progress = push.progress
        progress.state = UInt8(random.number(in: 1...3))
        progress.cursor += UInt64(random.number(in: 1...9))
        progress.matched = 1_000_000
        progress.reached += UInt32(random.number(in: 1...9))
        progress.online += 1
        progress.queued += 2
        progress.dropped += 3
        progress.withoutSession += 4
        progress.denied += 5
        progress.beganMs = 17
        if random.once(in: 3) { progress.endedMs = 19 }
        add(.pushProgress(progress), &model)
    }

    /// Adds a receipt, a receiver or an end to one of the last receipts, or drops the oldest.
    private mutating func changeReceipts(_ session: UInt64, _ model: inout StoreModel) {
        let first = model.receipts.receipts.keys.min() ?? receiptCount + 1
        guard receiptCount >= first, !random.once(in: 3) else {
            receiptCount += 1
            add(
                .receipt(
                    StoredReceipt(
                        number: receiptCount, atMs: Int64(receiptCount), messageID: text(9),
                        topic: text(5))), &model)
            return
        }
        let number = UInt64(random.number(in: Int(first)...Int(receiptCount)))
        let places = model.receipts.receivers[number]?.count ?? 0
        switch random.number(in: 1...5) {
        case 1:
            add(
                .receiptProgress(
                    ReceiptProgress(begin: number, lastEvent: number * 7, taken: number * 3)),
                &model)
        case 2...3 where places > 0:
            add(
                .receiptEnded(
                    ReceiverEnd(
                        receipt: number, place: UInt32(random.number(in: 0..<places)),
                        outcome: UInt8(random.number(in: 1...4)), reason: 255, atMs: 8,
                        event: UInt64(groupCount))), &model)
        default:
            add(
                .receiptReceiver(
                    StoredReceiver(
                        receipt: number, place: UInt32(places), session: session,
                        position: UInt64(groupCount), clientIdentifier: text(7))), &model)
        }
    }

    private mutating func addMessage(_ model: inout StoreModel) -> UInt64 {
        let number = model.progress.lastMessage + UInt64(random.number(in: 1...2))
        let payload = random.bytes(random.number(in: 0..<largestPayload))
        add(
            .message(
                number, topic: text(4), payload: payload, qos: UInt8(random.number(in: 1...2)),
                retain: random.once(in: 4),
                expiresAtMs: random.once(in: 4) ? Int64(random.number(in: 1...9_999)) : 0), &model)
        if random.once(in: 2) {
            let count = random.once(in: 8) ? 255 : random.number(in: 1...40)
            add(.named(number, messageID: random.bytes(count)), &model)
        }
        return number
    }

    private mutating func publish(_ sessions: [UInt64], _ model: inout StoreModel) {
        let number = addMessage(&model)
        for session in sessions.shuffled(using: &random).prefix(random.number(in: 0...3)) {
            let end = model.sessions[session]?.end ?? 0
            let position = end + UInt64(random.once(in: 9) ? 2 : 0)
            add(
                .queued(
                    session: session, position: position, message: number,
                    qos: UInt8(random.number(in: 1...2)), retain: random.once(in: 3),
                    isInWindow: random.once(in: 2)), &model)
            if random.once(in: 3) {
                add(.shared(session: session, position: position, filter: text(3)), &model)
            }
        }
        if random.once(in: 6) { add(.retained(message: number), &model) }
    }

    /// One of few texts, so that they repeat.
    private mutating func text(_ count: Int) -> [UInt8] {
        [UInt8]("text/\(random.number(in: 1...count))".utf8)
    }
}

extension SplitMix64 {
    fileprivate mutating func number(in range: Range<Int>) -> Int {
        Int.random(in: range, using: &self)
    }
}
