/// A message whose receivers are followed.
public struct StoredReceipt: Hashable, Sendable {
    /// Numbers rise and are never used again.
    public var number: UInt64
    /// UNIX time in milliseconds at which the message was published.
    public var atMs: Int64
    public var messageID: [UInt8]
    public var topic: [UInt8]

    public init(number: UInt64, atMs: Int64, messageID: [UInt8], topic: [UInt8]) {
        self.number = number
        self.atMs = atMs
        self.messageID = messageID
        self.topic = topic
    }
}

/// One receiver of such a message.
public struct StoredReceiver: Hashable, Sendable {
    public var receipt: UInt64
    /// Its place among the receivers of the receipt, from 0.
    public var place: UInt32
    /// The number of its session.
    public var session: UInt64
    /// The message's position in the session's queue.
    public var position: UInt64
    public var clientIdentifier: [UInt8]

    public init(
        receipt: UInt64, place: UInt32, session: UInt64, position: UInt64,
        clientIdentifier: [UInt8]
    ) {
        self.receipt = receipt
        self.place = place
        self.session = session
        self.position = position
        self.clientIdentifier = clientIdentifier
    }
}

/// What became of the message for a receiver.
public struct ReceiverEnd: Hashable, Sendable, BitwiseCopyable {
    public var receipt: UInt64
    public var place: UInt32
    /// The broker's number of the outcome; 0 while the message waits or is in flight.
    public var outcome: UInt8
    /// The broker's number of a drop's reason.
    public var reason: UInt8
    /// UNIX time in milliseconds.
    public var atMs: Int64
    /// The number of the event that tells of it; 0 for none.
    public var event: UInt64

    public init(
        receipt: UInt64, place: UInt32, outcome: UInt8, reason: UInt8, atMs: Int64, event: UInt64
    ) {
        self.receipt = receipt
        self.place = place
        self.outcome = outcome
        self.reason = reason
        self.atMs = atMs
        self.event = event
    }
}

/// Bounds of the receipts and of their events. Each number only rises.
public struct ReceiptProgress: Hashable, Sendable, BitwiseCopyable {
    /// Receipts below this number are dropped.
    public var begin: UInt64
    /// The highest number of an event when receipts were dropped last.
    public var lastEvent: UInt64
    /// Events up to this number are taken.
    public var taken: UInt64

    public init(begin: UInt64 = 0, lastEvent: UInt64 = 0, taken: UInt64 = 0) {
        self.begin = begin
        self.lastEvent = lastEvent
        self.taken = taken
    }

    mutating func raise(to other: ReceiptProgress) {
        begin = max(begin, other.begin)
        lastEvent = max(lastEvent, other.lastEvent)
        taken = max(taken, other.taken)
    }
}

/// A segment's changes of receipts.
public struct ReceiptChanges: Hashable, Sendable {
    /// Ordered by number.
    public var receipts: [StoredReceipt] = []
    public var receivers: [StoredReceiver] = []
    public var ends: [ReceiverEnd] = []
    public var progress = ReceiptProgress()

    public init() {}

    public var isEmpty: Bool { self == ReceiptChanges() }
}
