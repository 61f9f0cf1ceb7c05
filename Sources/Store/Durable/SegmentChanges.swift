/// The net changes of a full journal segment, which the database does not have yet.
///
/// State that was created and removed within the segment does not appear, and state that changed
/// twice appears once. The database applies all changes in one transaction, after which the
/// segment's file may be reused.
public struct SegmentChanges: Sendable {
    /// A part of a journal segment.
    public struct Location: Sendable, Hashable, BitwiseCopyable {
        /// The segment's number; numbers count from 1 and are never used twice.
        public var segment: UInt64
        /// Bytes from the beginning of the segment's file.
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
        public var clientID: [UInt8]
        public var userName: [UInt8]?

        public init(number: UInt64, clientID: [UInt8], userName: [UInt8]?) {
            self.number = number
            self.clientID = clientID
            self.userName = userName
        }
    }

    /// The changed state of a session; `nil` for unchanged fields.
    public struct SessionState: Sendable, Hashable {
        public var number: UInt64
        public var isAttached: Bool?
        /// UNIX time in milliseconds since which the client is offline.
        public var detachedSinceMs: Int64?
        /// Messages at positions below this one may have been sent.
        public var horizon: UInt64?
        /// The next position to be assigned.
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
        /// `nil` for a removed subscription.
        public var grant: UInt32?

        public init(session: UInt64, filter: [UInt8], grant: UInt32?) {
            self.session = session
            self.filter = filter
            self.grant = grant
        }
    }

    /// A message to which something in this segment still refers.
    public struct SurvivingMessage: Sendable, Hashable {
        public var number: UInt64
        public var topic: Location
        public var payload: Location
        public var qos: UInt8
        public var retain: Bool
        /// UNIX time in milliseconds; 0 for a message that never expires.
        public var expiresAtMs: Int64
        /// Number of queue positions, retained messages and wills of this segment that refer to it.
        public var references: UInt32
        /// The message's identifier, behind the payload; `nil` for none.
        public var messageID: Location?

        public init(
            number: UInt64, topic: Location, payload: Location, qos: UInt8, retain: Bool,
            expiresAtMs: Int64, references: UInt32, messageID: Location? = nil
        ) {
            self.number = number
            self.topic = topic
            self.payload = payload
            self.messageID = messageID
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
        /// True for a QoS 2 message whose PUBREC has come: only PUBREL is owed.
        public var isReleased: Bool
        /// Index in `sharedFilters` of the shared subscription that chose the session; ``none`` for
        /// none.
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

    /// Positions that are in the database, both ends included.
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
    }

    public struct RetainedChange: Sendable, Hashable {
        public var topic: [UInt8]
        /// Number of the message; `nil` for a removed retained message.
        public var message: UInt64?

        public init(topic: [UInt8], message: UInt64?) {
            self.topic = topic
            self.message = message
        }
    }

    public struct WillChange: Sendable, Hashable {
        public var session: UInt64
        /// Number of the will's message; `nil` for a removed will.
        public var message: UInt64?

        public init(session: UInt64, message: UInt64?) {
            self.session = session
            self.message = message
        }
    }

    /// The segment's number.
    public var segment: UInt64
    /// The highest session number that has been assigned.
    public var lastSession: UInt64 = 0
    /// The highest message number that has been assigned.
    public var lastMessage: UInt64 = 0
    /// Number of sessions that the segment changes.
    public var sessionCount = 0
    /// Removed sessions of earlier segments. Everything that belongs to them is removed as well,
    /// before all other changes.
    public var removedSessions: [UInt64] = []
    public var newSessions: [NewSession] = []
    /// Sessions, new ones included, that have ended and still have their queue.
    public var endedSessions: [UInt64] = []
    public var sessionStates: [SessionState] = []
    public var subscriptions: [SubscriptionChange] = []
    /// Ordered by rising number.
    public var messages: [SurvivingMessage] = []
    /// The texts to which positions in `queued` refer; some texts may be unused.
    public var sharedFilters: [[UInt8]] = []
    /// Ordered by session and position once sorted; none of them is in `finished`.
    public var queued: [QueuedPosition] = []
    /// Positions of earlier segments that are released now.
    public var released: [PositionRange] = []
    /// Positions of earlier segments that are done; ordered by session and position once sorted.
    public var finished: [PositionRange] = []
    public var inbound: [InboundChange] = []
    public var retained: [RetainedChange] = []
    public var wills: [WillChange] = []
    public var facts = FactChanges()

    public init(segment: UInt64) { self.segment = segment }

    /// Sorts everything but the messages, which already are. A database takes rows fastest in the
    /// order of their keys.
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
        facts.sort()
    }
}
