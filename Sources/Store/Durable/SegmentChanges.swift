/// What a full journal segment leaves behind: the net changes that the database still has to learn.
///
/// Whatever was made and undone within the segment does not appear; what appears twice appears as
/// its last state. All of it becomes durable in one transaction, after which the segment may be
/// reused.
public struct SegmentChanges: Sendable {
    /// A part of a journal segment.
    public struct Location: Sendable, Hashable, BitwiseCopyable {
        /// The segment's number; segments are numbered from 1 and never twice.
        public var segment: UInt64
        /// From the beginning of the segment's file, in bytes.
        public var offset: UInt32
        public var count: UInt32

        public init(segment: UInt64, offset: UInt32, count: UInt32) {
            self.segment = segment
            self.offset = offset
            self.count = count
        }
    }

    public struct NewSession: Sendable, Hashable {
        public var number: UInt64
        public var clientIdentifier: [UInt8]
        public var userName: [UInt8]?

        public init(number: UInt64, clientIdentifier: [UInt8], userName: [UInt8]?) {
            self.number = number
            self.clientIdentifier = clientIdentifier
            self.userName = userName
        }
    }

    /// What changed of a session's own state; `nil` is unchanged.
    public struct SessionState: Sendable, Hashable {
        public var number: UInt64
        public var isAttached: Bool?
        /// UNIX time in milliseconds since which the client is away.
        public var detachedSinceMs: Int64?
        /// Positions below were or may have been sent.
        public var horizon: UInt64?
        /// The next position to be given.
        public var end: UInt64?

        public init(
            number: UInt64, isAttached: Bool?, detachedSinceMs: Int64?, horizon: UInt64?,
            end: UInt64?
        ) {
            self.number = number
            self.isAttached = isAttached
            self.detachedSinceMs = detachedSinceMs
            self.horizon = horizon
            self.end = end
        }
    }

    public struct SubscriptionChange: Sendable, Hashable {
        public var session: UInt64
        public var filter: [UInt8]
        /// `nil`: removed.
        public var qos: UInt8?

        public init(session: UInt64, filter: [UInt8], qos: UInt8?) {
            self.session = session
            self.filter = filter
            self.qos = qos
        }
    }

    /// Content that something of this segment still refers to.
    public struct SurvivingMessage: Sendable, Hashable {
        public var number: UInt64
        public var topic: Location
        public var payload: Location
        public var qos: UInt8
        public var retain: Bool
        /// UNIX time in milliseconds; 0 is never.
        public var expiresAtMs: Int64
        /// Queue positions, retained values and wills of this segment that refer to it.
        public var references: UInt32

        public init(
            number: UInt64, topic: Location, payload: Location, qos: UInt8, retain: Bool,
            expiresAtMs: Int64, references: UInt32
        ) {
            self.number = number
            self.topic = topic
            self.payload = payload
            self.qos = qos
            self.retain = retain
            self.expiresAtMs = expiresAtMs
            self.references = references
        }
    }

    public struct QueuedPosition: Sendable, Hashable {
        public var session: UInt64
        public var position: UInt64
        public var message: UInt64
        public var qos: UInt8
        public var retain: Bool
        /// PUBREC came; only the PUBREL is owed.
        public var isReleased: Bool
        /// The shared subscription that it came by, among `sharedFilters`; ``none`` for none.
        public var shared: UInt32

        public static let none = UInt32.max
        var isShared: Bool { shared != Self.none }

        public init(
            session: UInt64, position: UInt64, message: UInt64, qos: UInt8, retain: Bool,
            isReleased: Bool, shared: UInt32 = none
        ) {
            self.session = session
            self.position = position
            self.message = message
            self.qos = qos
            self.retain = retain
            self.isReleased = isReleased
            self.shared = shared
        }
    }

    /// Positions that the database holds, both ends included.
    public struct PositionRange: Sendable, Hashable {
        public var session: UInt64
        public var first: UInt64
        public var last: UInt64

        public init(session: UInt64, first: UInt64, last: UInt64) {
            self.session = session
            self.first = first
            self.last = last
        }
    }

    public struct InboundChange: Sendable, Hashable {
        public var session: UInt64
        public var packetIdentifier: UInt16
        public var isPresent: Bool

        public init(session: UInt64, packetIdentifier: UInt16, isPresent: Bool) {
            self.session = session
            self.packetIdentifier = packetIdentifier
            self.isPresent = isPresent
        }
    }

    public struct RetainedChange: Sendable, Hashable {
        public var topic: [UInt8]
        /// `nil`: removed.
        public var message: UInt64?

        public init(topic: [UInt8], message: UInt64?) {
            self.topic = topic
            self.message = message
        }
    }

    public struct WillChange: Sendable, Hashable {
        public var session: UInt64
        /// `nil`: removed.
        public var message: UInt64?

        public init(session: UInt64, message: UInt64?) {
            self.session = session
            self.message = message
        }
    }

    public struct SequenceChange: Sendable, Hashable {
        public var channel: [UInt8]
        public var number: UInt64

        public init(channel: [UInt8], number: UInt64) {
            self.channel = channel
            self.number = number
        }
    }

    /// The segment's number.
    public var segment: UInt64
    /// The highest numbers given so far.
    public var lastSession: UInt64 = 0
    public var lastMessage: UInt64 = 0
    /// Removed sessions that earlier segments made; everything that is keyed by them goes too.
    /// Applied before all else.
    public var removedSessions: [UInt64] = []
    public var newSessions: [NewSession] = []
    /// Sessions, new ones too, that are over but for their queues.
    public var endedSessions: [UInt64] = []
    public var sessionStates: [SessionState] = []
    public var subscriptions: [SubscriptionChange] = []
    /// By number, rising.
    public var messages: [SurvivingMessage] = []
    /// What positions in `queued` name; some of them may be named by none.
    public var sharedFilters: [[UInt8]] = []
    /// By session and position, rising; none of them is in `finished`.
    public var queued: [QueuedPosition] = []
    /// Positions of earlier segments that are released now.
    public var released: [PositionRange] = []
    /// Positions of earlier segments that are done; by session and position, rising.
    public var finished: [PositionRange] = []
    public var inbound: [InboundChange] = []
    public var retained: [RetainedChange] = []
    public var wills: [WillChange] = []
    public var sequences: [SequenceChange] = []

    public init(segment: UInt64) { self.segment = segment }

    /// Sorts all but the messages, which are: a database takes rows in the order of their keys.
    mutating func sort() {
        removedSessions.sort()
        endedSessions.sort()
        newSessions.sort { $0.number < $1.number }
        sessionStates.sort { $0.number < $1.number }
        subscriptions.sort { $0.session < $1.session }
        queued.sort { ($0.session, $0.position) < ($1.session, $1.position) }
        released.sort { ($0.session, $0.first) < ($1.session, $1.first) }
        finished.sort { ($0.session, $0.first) < ($1.session, $1.first) }
        inbound.sort {
            ($0.session, $0.packetIdentifier) < ($1.session, $1.packetIdentifier)
        }
        wills.sort { $0.session < $1.session }
    }
}
