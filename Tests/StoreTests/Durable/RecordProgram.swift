import HermesTesting

@testable import Store

/// Groups of records as a broker could submit them, drawn from a seed, and a model of each.
///
/// Each group sets the fact ``marker`` to its number, so that a restored store shows how many
/// groups it holds.
struct RecordProgram {
    static let marker = StoreModel.FactName(200, [UInt8]("marker".utf8))

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
        let number = withUnsafeBytes(of: groupCount.bigEndian) { [UInt8]($0) }
        add(
            .fact(
                StoreRecord.Fact(
                    table: Self.marker.table, owner: FactOwner(Self.marker.key),
                    key: Self.marker.key, value: number, isNew: groupCount == 1)), &model)
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
                .subscription(
                    session, filter: text(5),
                    grant: UInt32(random.number(in: 0...2))
                        | (random.once(in: 2) ? UInt32(random.number(in: 0...255)) << 2 : 0)),
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
        case 25, 29...32: changeFacts(&model)
        case 26: add(.willRemoved(session: session), &model)
        case 27...28: add(.retainedRemoved(topic: text(4)), &model)
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
                number, clientID: [UInt8]("client/\(number)".utf8),
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

    /// Stores or removes one of few facts, or removes a range of them.
    private mutating func changeFacts(_ model: inout StoreModel) {
        let table = UInt8(random.number(in: 1...2))
        var key = [UInt8(random.number(in: 0...9))]
        if random.once(in: 3) { key.append(UInt8(random.number(in: 0...2))) }
        if random.once(in: 9) { key = [] }
        let owner = FactOwner(key)
        switch random.number(in: 1...6) {
        case 1:
            let from = [UInt8(random.number(in: 0...9))]
            add(
                .factsRemoved(
                    table: table, from: random.once(in: 2) ? [] : from,
                    below: [UInt8(random.number(in: 0...9))]), &model)
        case 2...3: add(.factRemoved(table: table, owner: owner, key: key), &model)
        default:
            let size = random.once(in: 20) ? 200 : random.number(in: 0...20)
            let isNew =
                model.facts[StoreModel.FactName(table, key)] == nil && !random.once(in: 3)
            add(
                .fact(
                    StoreRecord.Fact(
                        table: table, owner: owner, key: key, value: random.bytes(size),
                        isNew: isNew)), &model)
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
