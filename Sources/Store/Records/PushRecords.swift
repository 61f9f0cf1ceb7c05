/// A tag of a client.
public struct StoredTag: Hashable, Sendable {
    public var clientIdentifier: [UInt8]
    public var tag: [UInt8]

    public init(clientIdentifier: [UInt8], tag: [UInt8]) {
        self.clientIdentifier = clientIdentifier
        self.tag = tag
    }
}

/// A message that goes to many clients.
public struct StoredPush: Hashable, Sendable {
    /// Numbers rise and are never used again.
    public var number: UInt64
    /// UNIX times in milliseconds of the request, and of the beginning.
    public var createdMs: Int64
    public var dueMs: Int64
    /// Milliseconds after ``dueMs`` at which the message expires; 0 for never.
    public var expiresInMs: Int64
    /// Milliseconds over which the push is spread.
    public var spreadMs: Int64
    public var pushID: [UInt8]
    public var topic: [UInt8]
    /// Empty once the push has ended, as is ``target``.
    public var payload: [UInt8]
    public var qos: UInt8
    /// True when its receivers are followed.
    public var isFollowed: Bool
    /// The clients, in a form that only the shard knows.
    public var target: [UInt8]
    /// Defines their order; below 2^63.
    public var seed: UInt64
    /// How far it is.
    public var progress: PushProgress

    public init(
        number: UInt64, createdMs: Int64, dueMs: Int64, expiresInMs: Int64, spreadMs: Int64,
        pushID: [UInt8], topic: [UInt8], payload: [UInt8], qos: UInt8, isFollowed: Bool,
        target: [UInt8], seed: UInt64
    ) {
        self.number = number
        self.createdMs = createdMs
        self.dueMs = dueMs
        self.expiresInMs = expiresInMs
        self.spreadMs = spreadMs
        self.pushID = pushID
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.isFollowed = isFollowed
        self.target = target
        self.seed = seed
        progress = PushProgress(number: number)
    }

    /// Takes a later progress of this push over.
    public mutating func advance(to progress: PushProgress) {
        self.progress = progress
        guard progress.endedMs != 0 else { return }
        payload = []
        target = []
    }
}

/// How far a push is.
public struct PushProgress: Hashable, Sendable, BitwiseCopyable {
    /// The number of the push.
    public var number: UInt64
    /// 0 before it begins; the shard knows the other states.
    public var state: UInt8 = 0
    /// Clients whose turn has come are in front of this place; below 2^63.
    public var cursor: UInt64 = 0
    /// Clients of the push; of these, those whose turn has come, and of them those in each case.
    public var matched: UInt32 = 0
    public var reached: UInt32 = 0
    public var online: UInt32 = 0
    public var queued: UInt32 = 0
    public var dropped: UInt32 = 0
    public var withoutSession: UInt32 = 0
    public var denied: UInt32 = 0
    /// UNIX times in milliseconds at which it began and ended; 0 before.
    public var beganMs: Int64 = 0
    public var endedMs: Int64 = 0

    public init(number: UInt64) { self.number = number }
}

/// A segment's changes of tags.
public struct TagChanges: Hashable, Sendable {
    /// True for a tag that was added, false for one that was removed last.
    public var isSet: [StoredTag: Bool] = [:]

    public init() {}

    public var isEmpty: Bool { isSet.isEmpty }
}

/// A segment's changes of pushes.
public struct PushChanges: Hashable, Sendable {
    /// Ordered by number.
    public var added: [StoredPush] = []
    /// The last progress of each push, by number.
    public var progress: [UInt64: PushProgress] = [:]
    /// Pushes that are not kept any more.
    public var removed: [UInt64] = []

    public init() {}

    public var isEmpty: Bool { added.isEmpty && progress.isEmpty && removed.isEmpty }
}
