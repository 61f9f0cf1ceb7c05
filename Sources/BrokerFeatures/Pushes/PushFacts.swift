import BrokerAPI
import BrokerCore
import Store

/// A message that goes to many clients.
struct StoredPush: Hashable, Sendable {
    /// Numbers rise and are never used again.
    var number: UInt64
    /// UNIX times in milliseconds of the request, and of the beginning.
    var createdMs: Int64
    var dueMs: Int64
    /// Milliseconds after ``dueMs`` at which the message expires; 0 for never.
    var expiresInMs: Int64
    /// Milliseconds over which the push is spread.
    var spreadMs: Int64
    var pushID: [UInt8]
    /// The token that gave the identifier.
    var owner: OwnerID
    var topic: [UInt8]
    /// Empty once the push has ended, as is ``target``.
    var payload: [UInt8]
    var qos: UInt8
    /// True when its receivers are followed.
    var isFollowed: Bool
    /// The clients, in a form that only the shard knows.
    var target: [UInt8]
    /// Defines their order; below 2^63.
    var seed: UInt64
    /// How far it is.
    var progress: PushProgress

    init(
        number: UInt64, createdMs: Int64, dueMs: Int64, expiresInMs: Int64, spreadMs: Int64,
        pushID: [UInt8], owner: OwnerID, topic: [UInt8], payload: [UInt8], qos: UInt8,
        isFollowed: Bool,
        target: [UInt8], seed: UInt64
    ) {
        self.number = number
        self.createdMs = createdMs
        self.dueMs = dueMs
        self.expiresInMs = expiresInMs
        self.spreadMs = spreadMs
        self.pushID = pushID
        self.owner = owner
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.isFollowed = isFollowed
        self.target = target
        self.seed = seed
        progress = PushProgress(number: number, owner: FactOwner(pushID))
    }

    /// Takes a later progress of this push over.
    mutating func advance(to progress: PushProgress) {
        self.progress = progress
        guard progress.endedMs != 0 else { return }
        payload = []
        target = []
    }
}

/// How far a push is.
struct PushProgress: Hashable, Sendable, BitwiseCopyable {
    /// The number of the push.
    var number: UInt64
    /// 0 before it begins; the shard knows the other states.
    var state: UInt8 = 0
    /// Clients whose turn has come are in front of this place; below 2^63.
    var cursor: UInt64 = 0
    /// Clients of the push; of these, those whose turn has come, and of them those in each case.
    var matched: UInt32 = 0
    var reached: UInt32 = 0
    var online: UInt32 = 0
    var queued: UInt32 = 0
    var dropped: UInt32 = 0
    var withoutSession: UInt32 = 0
    var denied: UInt32 = 0
    /// UNIX times in milliseconds at which it began and ended; 0 before.
    var beganMs: Int64 = 0
    var endedMs: Int64 = 0

    /// The owner of the push.
    var owner: FactOwner

    init(number: UInt64, owner: FactOwner) {
        self.number = number
        self.owner = owner
    }
}

/// A push has three facts, by its number and 0 to 2: the content, which are payload and clients,
/// until the push ends; the progress, once there is any; and the rest, which a start reads last.
extension WriteBatch {
    /// The progress of a new push is none, whatever ``StoredPush/progress`` is.
    mutating func push(_ push: StoredPush) {
        let owner = FactOwner(push.pushID)
        fact(.push, of: owner, isNew: true) {
            $0.put(push.number)
            $0.put(0 as UInt8)
        } value: {
            $0.putText(push.payload)
            $0.putRest(push.target)
        }
        fact(.push, of: owner, isNew: true) {
            $0.put(push.number)
            $0.put(2 as UInt8)
        } value: {
            $0.put(push.createdMs)
            $0.put(push.dueMs)
            $0.put(push.expiresInMs)
            $0.put(push.spreadMs)
            $0.put(push.seed)
            $0.put(push.qos)
            $0.put(push.isFollowed)
            $0.putOwned(push.pushID, push.owner)
            $0.putRest(push.topic)
        }
    }

    /// The end of a push also removes its content.
    mutating func pushProgress(_ progress: PushProgress) {
        fact(.push, of: progress.owner) {
            $0.put(progress.number)
            $0.put(1 as UInt8)
        } value: {
            $0.put(progress.state)
            $0.put(progress.cursor)
            $0.put(progress.matched)
            $0.put(progress.reached)
            $0.put(progress.online)
            $0.put(progress.queued)
            $0.put(progress.dropped)
            $0.put(progress.withoutSession)
            $0.put(progress.denied)
            $0.put(progress.beganMs)
            $0.put(progress.endedMs)
        }
        if progress.endedMs != 0 { pushPartRemoved(progress.number, 0, progress.owner) }
    }

    mutating func pushRemoved(_ number: UInt64, of owner: FactOwner) {
        for part in 0...2 as ClosedRange<UInt8> { pushPartRemoved(number, part, owner) }
    }

    private mutating func pushPartRemoved(_ number: UInt64, _ part: UInt8, _ owner: FactOwner) {
        factRemoved(.push, of: owner) {
            $0.put(number)
            $0.put(part)
        }
    }
}

/// Puts the facts of a push together, which come one after the other.
struct PushParts {
    private var content: (number: UInt64, payload: [UInt8], target: [UInt8])?
    private var progress: PushProgress?

    /// Adds a fact; returns the push after its last one.
    mutating func add(_ fact: StoredFact) throws(DamagedFact) -> StoredPush? {
        var key = FactReader(fact.key)
        var value = FactReader(fact.value)
        let number = try key.number()
        let part = try key.byte()
        try key.finish()
        switch part {
        case 0:
            let payload = try value.text()
            try FactReader.check(payload: payload)
            content = (number, payload, value.rest())
            return nil
        case 1:
            progress = try PushProgress(number, fact.owner, &value)
            return nil
        case 2: break
        default: throw DamagedFact()
        }
        var push = try StoredPush(number, &value)
        if let content, content.number == number {
            push.payload = content.payload
            push.target = content.target
        }
        content = nil
        if let progress, progress.number == number { push.advance(to: progress) }
        return push
    }
}

extension StoredPush {
    fileprivate init(_ number: UInt64, _ value: inout FactReader) throws(DamagedFact) {
        let (createdMs, dueMs) = (try value.time(), try value.time())
        let (expiresInMs, spreadMs) = (try value.time(), try value.time())
        let seed = try value.number()
        let (qos, isFollowed) = (try value.byte(), try value.flag())
        let name = try value.ownedName()
        self.init(
            number: number, createdMs: createdMs, dueMs: dueMs, expiresInMs: expiresInMs,
            spreadMs: spreadMs, pushID: name.name, owner: name.owner, topic: try value.restName(),
            payload: [], qos: qos, isFollowed: isFollowed, target: [], seed: seed)
    }
}

extension PushProgress {
    fileprivate init(
        _ number: UInt64, _ owner: FactOwner, _ value: inout FactReader
    ) throws(DamagedFact) {
        self.init(number: number, owner: owner)
        state = try value.byte()
        cursor = try value.number()
        matched = try Self.clients(&value)
        reached = try Self.clients(&value)
        online = try Self.clients(&value)
        queued = try Self.clients(&value)
        dropped = try Self.clients(&value)
        withoutSession = try Self.clients(&value)
        denied = try Self.clients(&value)
        beganMs = try value.time()
        endedMs = try value.time()
        try value.finish()
    }

    /// A number of clients, which leaves room to count on.
    private static func clients(_ value: inout FactReader) throws(DamagedFact) -> UInt32 {
        let count = try value.count()
        guard count <= UInt32(Int32.max) else { throw DamagedFact() }
        return count
    }
}

extension FactTable {
    static var push: FactTable { FactTable(number: 8, name: "push") }
}

extension StoredTable {
    static let pushes = StoredTable(
        .push,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            guard let push = try shard.features.restoring.push.add(fact) else { return }
            guard shard.restorePush(push) else { throw DamagedFact() }
        },
        noteNumber: { shard, number in shard.features.pushes.noteStored(number) })
}
