import Store

/// What a store holds, as plain values in dictionaries.
package struct StoreModel: Equatable {
    package struct Message: Equatable {
        package var number: UInt64
        package var topic: [UInt8]
        package var payload: [UInt8]
        package var qos: UInt8
        package var retain: Bool
        package var expiresAtMs: Int64
        package var messageID: [UInt8]

        package init(
            number: UInt64, topic: [UInt8], payload: [UInt8], qos: UInt8, retain: Bool,
            expiresAtMs: Int64, messageID: [UInt8] = []
        ) {
            self.number = number
            self.topic = topic
            self.payload = payload
            self.qos = qos
            self.retain = retain
            self.expiresAtMs = expiresAtMs
            self.messageID = messageID
        }
    }

    package struct Row: Equatable {
        /// Without topic and payload once released.
        package var message: Message
        package var qos: UInt8
        package var retain: Bool
        package var isReleased: Bool
        package var shared: [UInt8]

        package init(
            message: Message, qos: UInt8, retain: Bool, isReleased: Bool, shared: [UInt8] = []
        ) {
            self.message = message
            self.qos = qos
            self.retain = retain
            self.isReleased = isReleased
            self.shared = shared
        }

        package mutating func release() {
            message = Message(
                number: message.number, topic: [], payload: [], qos: 0, retain: false,
                expiresAtMs: 0)
            isReleased = true
        }
    }

    package struct Session: Equatable {
        package var clientID: [UInt8]
        package var userName: [UInt8]?
        package var isAttached: Bool
        package var detachedSinceMs: Int64
        package var horizon: UInt64
        package var end: UInt64
        package var hasEnded: Bool
        package var queue: [UInt64: Row] = [:]
        package var subscriptions: [[UInt8]: UInt32] = [:]
        package var inbound: Set<UInt16> = []
        package var will: Message?

        package init(
            clientID: [UInt8], userName: [UInt8]?, isAttached: Bool = false,
            detachedSinceMs: Int64 = 0, horizon: UInt64 = 0, end: UInt64 = 0,
            hasEnded: Bool = false
        ) {
            self.clientID = clientID
            self.userName = userName
            self.isAttached = isAttached
            self.detachedSinceMs = detachedSinceMs
            self.horizon = horizon
            self.end = end
            self.hasEnded = hasEnded
        }

        package mutating func endSession() {
            hasEnded = true
            isAttached = false
            subscriptions = [:]
            inbound = []
            will = nil
        }

        package var holdsShared: Bool { queue.values.contains { !$0.shared.isEmpty } }

        package var waitingBytes: Int {
            queue.values.reduce(0) { $0 + $1.message.topic.count + $1.message.payload.count }
        }
    }

    package struct Progress: Equatable {
        /// The last journal segment whose changes are in; 0 before the first.
        package var appliedSegment: UInt64
        /// The highest numbers that were ever assigned.
        package var lastSession: UInt64
        package var lastMessage: UInt64

        package init(
            appliedSegment: UInt64 = 0, lastSession: UInt64 = 0, lastMessage: UInt64 = 0
        ) {
            self.appliedSegment = appliedSegment
            self.lastSession = lastSession
            self.lastMessage = lastMessage
        }
    }

    /// Table and key of a fact.
    package struct FactName: Hashable, Comparable {
        package var table: UInt8
        package var key: [UInt8]

        package init(_ table: UInt8, _ key: [UInt8]) {
            self.table = table
            self.key = key
        }

        package static func < (one: FactName, other: FactName) -> Bool {
            one.table != other.table
                ? one.table < other.table : one.key.lexicographicallyPrecedes(other.key)
        }
    }

    package struct Fact: Equatable {
        package var owner: FactOwner
        package var value: [UInt8]

        package init(owner: FactOwner, value: [UInt8]) {
            self.owner = owner
            self.value = value
        }
    }

    package var sessions: [UInt64: Session] = [:]
    package var retained: [[UInt8]: Message] = [:]
    package var facts: [FactName: Fact] = [:]
    package var progress = Progress()

    package init() {}

    package mutating func removeFacts(_ table: UInt8, from: [UInt8], below: [UInt8]) {
        let (first, end) = (FactName(table, from), FactName(table, below))
        facts = facts.filter { $0.key < first || !($0.key < end) }
    }
}
