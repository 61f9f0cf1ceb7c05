/// Records of journals of version 4 and before, for what are facts since version 5.
enum FormerKind: UInt8 {
    case sequence = 19
    case publishKey = 22
    case publishKeysDropped = 23
    case collapsible = 43
    case collapsibleEnded = 44
    case receipt = 45
    case receiptReceiver = 46
    case receiptEnded = 47
    case receiptProgress = 48
    case scheduled = 50
    case scheduledMoved = 51
    case scheduledEnded = 52
    case tag = 55
    case push = 56
    case pushProgress = 57
    case pushRemoved = 58
    case device = 60
    case deviceRemoved = 61
    case woken = 62
}

extension RecordReader {
    /// Reads the record of a kind that the present version does not write.
    mutating func former(_ kind: UInt8) throws(DamagedRecord) -> RecordView {
        guard let former = FormerKind(rawValue: kind) else { throw damage }
        let start = offset
        let owners = FormerOwners(nil)
        _ = try facts(former, owners) { _ in .broker }
        return .former(kind, RecordView.Bytes(offset: start, count: offset - start))
    }

    /// Reads the fields of a record; returns the changes of facts that it means.
    mutating func facts(
        _ kind: FormerKind, _ owners: FormerOwners, ofSession owner: (UInt64) -> FactOwner
    ) throws(DamagedRecord) -> [FormerFact] {
        switch kind {
        case .sequence:
            let number: UInt64 = try integer()
            return [.sequence(try text(), number)]
        case .publishKey:
            return [
                .publishKey(
                    try integer(), digest: try integer(), messageID: try integer(),
                    bucket: try integer(),
                    counts: [try integer(), try integer(), try integer(), try integer()])
            ]
        case .publishKeysDropped:
            return [
                .removeRange(
                    FormerFact.Table.publishKey, from: [], below: FormerFact.key(try integer()))
            ]
        case .collapsible:
            let session: UInt64 = try integer()
            let position: UInt64 = try integer()
            return [
                .collapsible(
                    session, owner(session), position: position, key: try integer(),
                    sequences: try numberList())
            ]
        case .collapsibleEnded:
            let session: UInt64 = try integer()
            return [
                .remove(
                    FormerFact.Table.collapsible, owner(session),
                    key: FormerFact.collapsibleKey(session, try integer()))
            ]
        case .tag:
            let isSet = try flag()
            let client = try text()
            return [.tag(try text(), of: client, isSet: isSet)]
        case .receipt, .receiptReceiver, .receiptEnded, .receiptProgress:
            return try receiptFacts(kind, owners)
        case .scheduled, .scheduledMoved, .scheduledEnded: return try scheduledFacts(kind, owners)
        case .push, .pushProgress, .pushRemoved: return try pushFacts(kind, owners)
        case .device, .deviceRemoved, .woken: return try deviceFacts(kind)
        }
    }

    private mutating func receiptFacts(
        _ kind: FormerKind, _ owners: FormerOwners
    ) throws(DamagedRecord) -> [FormerFact] {
        let table = FormerFact.Table.receipt
        let number: UInt64 = try integer()
        switch kind {
        case .receipt:
            let atMs: Int64 = try integer()
            let messageID = try text()
            owners.note(table, number, FactOwner(messageID))
            return [.receipt(number, atMs: atMs, messageID: messageID, topic: try text())]
        case .receiptReceiver:
            return [
                .receiver(
                    number, owners.owner(table, number), place: try integer(),
                    session: try integer(), position: try integer(), client: try text())
            ]
        case .receiptEnded:
            return [
                .receiverEnd(
                    number, owners.owner(table, number), place: try integer(),
                    outcome: try byte(), reason: try byte(), atMs: try integer(),
                    event: try integer())
            ]
        default:
            return [
                .receiptBounds(begin: number, lastEvent: try integer(), taken: try integer()),
                .removeRange(table, from: [], below: FormerFact.key(number)),
            ]
        }
    }

    private mutating func scheduledFacts(
        _ kind: FormerKind, _ owners: FormerOwners
    ) throws(DamagedRecord) -> [FormerFact] {
        let table = FormerFact.Table.scheduled
        let number: UInt64 = try integer()
        switch kind {
        case .scheduled:
            let dueMs: Int64 = try integer()
            let expiresInMs: Int64 = try integer()
            let qos = try byte()
            let retain = try flag()
            let isFollowed = try flag()
            let messageID = try text()
            owners.note(table, number, FactOwner(messageID))
            return [
                .scheduled(
                    number, dueMs: dueMs, expiresInMs: expiresInMs, qos: qos, retain: retain,
                    isFollowed: isFollowed, messageID: messageID, topic: try text(),
                    payload: try text())
            ]
        case .scheduledMoved:
            return [
                .store(
                    table, owners.owner(table, number), key: FormerFact.key(number, part: 0),
                    value: FormerFact.key(try integer()))
            ]
        default:
            let owner = owners.owner(table, number)
            return [0, 1].map {
                .remove(table, owner, key: FormerFact.key(number, part: $0))
            }
        }
    }

    private mutating func pushFacts(
        _ kind: FormerKind, _ owners: FormerOwners
    ) throws(DamagedRecord) -> [FormerFact] {
        let table = FormerFact.Table.push
        let number: UInt64 = try integer()
        switch kind {
        case .push:
            let times: [Int64] = [try integer(), try integer(), try integer(), try integer()]
            let seed: UInt64 = try integer()
            let qos = try byte()
            let isFollowed = try flag()
            let pushID = try text()
            owners.note(table, number, FactOwner(pushID))
            return FormerFact.push(
                number, times: times, seed: seed, qos: qos, isFollowed: isFollowed,
                pushID: pushID, topic: try text(), payload: try text(), target: try text())
        case .pushProgress:
            return FormerFact.pushProgress(
                number, owners.owner(table, number), state: try byte(), cursor: try integer(),
                counts: [
                    try integer(), try integer(), try integer(), try integer(), try integer(),
                    try integer(), try integer(),
                ], beganMs: try integer(), endedMs: try integer())
        default:
            let owner = owners.owner(table, number)
            return (0...2).map { .remove(table, owner, key: FormerFact.key(number, part: $0)) }
        }
    }

    private mutating func deviceFacts(
        _ kind: FormerKind
    ) throws(DamagedRecord) -> [FormerFact] {
        switch kind {
        case .device:
            let client = try text()
            let hasUserName = try flag()
            let userName = try text()
            return [
                .device(
                    client, userName: hasUserName ? userName : nil, token: try text(),
                    bundle: try text(), kind: try byte(), environment: try byte(),
                    registeredMs: try integer(), isSetAside: try flag()),
                .remove(FormerFact.Table.woken, FactOwner(client), key: client),
            ]
        case .woken:
            let session: UInt64 = try integer()
            let position: UInt64 = try integer()
            return [.woken(try text(), session: session, position: position)]
        default:
            let client = try text()
            return [FormerFact.Table.device, FormerFact.Table.woken].map {
                .remove($0, FactOwner(client), key: client)
            }
        }
    }

    private mutating func text() throws(DamagedRecord) -> [UInt8] { array(try string()) }

    private mutating func numberList() throws(DamagedRecord) -> [UInt64] {
        let count: UInt32 = try integer()
        var numbers: [UInt64] = []
        for _ in 0..<count { numbers.append(try integer()) }
        return numbers
    }
}

/// Owners of receipts, scheduled messages and pushes by their numbers, which are all that later
/// records of version 4 name.
final class FormerOwners {
    /// `nil` without stored facts.
    private let database: Database?
    /// By table and number; `nil` until one is asked for.
    private var known: [UInt8: [UInt64: FactOwner]]?
    private var sessions: [UInt64: FactOwner] = [:]

    init(_ database: Database?) { self.database = database }

    func note(_ table: UInt8, _ number: UInt64, _ owner: FactOwner) {
        guard database != nil else { return }
        load()
        known?[table, default: [:]][number] = owner
    }

    func owner(_ table: UInt8, _ number: UInt64) -> FactOwner {
        guard database != nil else { return .broker }
        load()
        return known?[table]?[number] ?? .broker
    }

    func owner(ofSession number: UInt64) -> FactOwner {
        load()
        return sessions[number] ?? .broker
    }

    /// The first former record finds the database as it is; what the journal adds is noted.
    private func load() {
        guard known == nil, let database else { return }
        var owners: [UInt8: [UInt64: FactOwner]] = [:]
        // A database that cannot be read fails the start soon after, when it is restored.
        try? database.forEachFact { fact in
            var key = FactReader(fact.key)
            guard fact.table >= FormerFact.Table.receipt, let number = try? key.number() else {
                return
            }
            owners[fact.table, default: [:]][number] = fact.owner
        }
        try? database.forEachSession {
            sessions[$0.number] = FactOwner($0.clientID)
        }
        known = owners
    }
}

extension JournalOverlay {
    /// Applies a record of version 4, whose fields are these bytes.
    mutating func applyFormer(
        _ kind: UInt8, _ fields: RecordView.Bytes, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        guard let kind = FormerKind(rawValue: kind) else { return false }
        let fields = UnsafeRawBufferPointer(
            rebasing: bytes[fields.offset..<fields.offset + fields.count])
        var reader = RecordReader(fields)
        var changes: [FormerFact] = []
        do throws(DamagedRecord) {
            changes = try reader.facts(kind, formerOwners) { formerOwner(ofSession: $0) }
        } catch {
            return false
        }
        active.weight += 1
        for change in changes { apply(change) }
        return true
    }

    private func formerOwner(ofSession number: UInt64) -> FactOwner {
        if let new = change(of: number)?.newSession { return FactOwner(new.clientID) }
        return formerOwners.owner(ofSession: number)
    }

    private func apply(_ change: FormerFact) {
        switch change {
        case .store(let table, let owner, let key, let value):
            key.withUnsafeBytes { key in
                value.withUnsafeBytes {
                    active.facts.put(FactKey(table, key), of: owner, $0, isNew: false)
                }
            }
        case .remove(let table, let owner, let key):
            key.withUnsafeBytes { active.facts.remove(FactKey(table, $0), of: owner) }
        case .removeRange(let table, let from, let below):
            from.withUnsafeBytes { from in
                below.withUnsafeBytes { active.facts.remove(table, from: from, below: $0) }
            }
        }
    }
}
