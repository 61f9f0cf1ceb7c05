import AdminModel

/// The admin plane's only way into the data plane: a question into the shard's mailbox, and an
/// answer back.
///
/// Every call may wait for the shard's next turn, never longer than its own deadline; a full
/// mailbox is ``BrokerUnavailable`` at once, which HTTP shows as 503 with `Retry-After`.
public protocol BrokerControl: Sendable {
    func status() async throws(BrokerUnavailable) -> StatusModel
    /// Counters and gauges of the broker and its process.
    func figures() async throws(BrokerUnavailable) -> BrokerFigures
    func clients(_ query: ClientQuery) async throws(BrokerUnavailable) -> ClientPage
    /// `nil` when there is neither a connection nor a session of that client identifier.
    func client(_ clientID: String) async throws(BrokerUnavailable) -> ClientDetail?
    /// Closes the client's connection as a network failure would (its will is published).
    /// False when it was not connected; its session stays.
    func disconnect(_ clientID: String) async throws(BrokerUnavailable) -> Bool
    /// A page of what the client is owed; `nil` when there is no such client.
    func queue(_ query: QueueQuery) async throws(BrokerUnavailable) -> QueuePage?
    /// Drops what waits for the client, never what is in flight, and returns once that is stored: how
    /// many messages. `nil` when there is no such client.
    func dropQueue(of clientID: String) async throws(BrokerUnavailable) -> Int?
    /// Returns once the message is stored as `durability` promises. The topic name and the
    /// size have been checked by the caller.
    func publish(_ publication: Publication) async throws(BrokerUnavailable) -> PublishCounts

    /// Why not everything is acknowledged durably, in words; `nil` when it is, as `durability`
    /// promises. It asks nobody who could keep it waiting.
    var notReadyReason: String? { get }
    /// Forgets damage that was found: what it was about, empty if there was none.
    func acceptLoss() async -> [String]
    /// Copies everything that is stored into an empty or new folder of the broker's machine, and
    /// returns once the copy is on the disk.
    func backUp(to directory: String) async throws(BackupFailure)
}

/// Why there is no backup; the text is for a person, and safe to show.
public enum BackupFailure: Error, Sendable, Equatable {
    /// The folder cannot take one.
    case unusableFolder(String)
    case outOfSpace(String)
    /// Nothing is stored with `durability: none`.
    case nothingStored
    /// The store cannot make one at present.
    case failed(String)
}

/// The data plane did not take the question: its mailbox is full, or it is stopping.
public enum BrokerUnavailable: Error, Sendable, Equatable {
    case overloaded
    case stopping
    /// The store takes no new messages at present: the disk refuses, or cannot keep up.
    case storeRefuses
    /// The disk is full, or nearly.
    case diskFull
    /// The store could not read a queue; why, safe to show.
    case unreadable(String)
}

/// A message on its way from HTTP into the data plane.
public struct Publication: Sendable, Equatable {
    /// UTF-8, without wildcards.
    public var topic: [UInt8]
    public var payload: [UInt8]
    /// 0, 1 or 2.
    public var qos: UInt8
    public var retain: Bool
    /// UNIX time in milliseconds after which it is no longer delivered; `nil` keeps it.
    public var expiresAtMs: Int64?
    /// Asks the data plane to count in a channel and append the sequence to the payload.
    public var sequenceStamp: SequenceStamp?

    public init(
        topic: [UInt8], payload: [UInt8], qos: UInt8, retain: Bool, expiresAtMs: Int64? = nil,
        sequenceStamp: SequenceStamp? = nil
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.expiresAtMs = expiresAtMs
        self.sequenceStamp = sequenceStamp
    }
}

/// A sequence belongs to the message that the data plane takes, so the data plane assigns it: it
/// appends `tag` and the channel's next number, as a protobuf varint field, to the payload.
public struct SequenceStamp: Sendable, Equatable {
    public var channel: [UInt8]
    /// The field's tag byte: number << 3 | 0 (varint). The field is the last of its message.
    public var tag: UInt8

    public init(channel: [UInt8], tag: UInt8) {
        self.channel = channel
        self.tag = tag
    }
}

/// What became of a publication, for the publisher's answer.
public struct PublishCounts: Sendable, Equatable {
    public var matched: Int
    public var online: Int
    public var queued: Int
    public var dropped: Int
    /// The number that ``Publication/sequenceStamp`` asked for.
    public var sequence: UInt64?

    public init(matched: Int, online: Int, queued: Int, dropped: Int, sequence: UInt64? = nil) {
        self.matched = matched
        self.online = online
        self.queued = queued
        self.dropped = dropped
        self.sequence = sequence
    }
}
