/// A push, and how far it is.
public struct PushStatus: Codable, Sendable, Equatable {
    public enum State: String, Codable, Sendable {
        /// Its time has not come.
        case scheduled
        /// Its clients are being determined, or get it.
        case sending
        case done
        /// It was cancelled; clients that had it by then keep it.
        case cancelled
        /// Its time was over before it had reached all of its clients.
        case expired
    }

    public var pushID: String
    public var topic: String
    public var qos: Int
    public var state: State
    /// UNIX times in milliseconds.
    public var createdAtMs: Int64
    public var deliverAtMs: Int64
    public var spreadSeconds: Int64
    /// When it was done, was cancelled or expired; `nil` before.
    public var endedAtMs: Int64?
    /// Clients of the push; `nil` while they are not determined.
    public var matched: Int?
    /// Clients whose turn has come: each is in one of the five following counts.
    public var reached: Int
    /// The client was connected, and its session took the message.
    public var online: Int
    /// The client was offline: the message waits in the queue of its session.
    public var queued: Int
    /// The message was lost at once (a limit, or QoS 0 while the client was offline).
    public var dropped: Int
    /// The client has no session.
    public var withoutSession: Int
    /// The access rules do not let the client read the topic.
    public var denied: Int
    /// What became of it for the clients that had it; `nil` when that is not followed, or not any more.
    public var receipts: MessageReceipt.Counts?

    enum CodingKeys: String, CodingKey {
        case pushID = "push_id"
        case topic, qos, state
        case createdAtMs = "created_at_ms"
        case deliverAtMs = "deliver_at_ms"
        case spreadSeconds = "spread_s"
        case endedAtMs = "ended_at_ms"
        case matched, reached, online, queued, dropped
        case withoutSession = "without_session"
        case denied, receipts
    }

    public init(
        pushID: String, topic: String, qos: Int, state: State, createdAtMs: Int64,
        deliverAtMs: Int64, spreadSeconds: Int64, endedAtMs: Int64? = nil, matched: Int? = nil,
        reached: Int = 0, online: Int = 0, queued: Int = 0, dropped: Int = 0,
        withoutSession: Int = 0, denied: Int = 0, receipts: MessageReceipt.Counts? = nil
    ) {
        self.pushID = pushID
        self.topic = topic
        self.qos = qos
        self.state = state
        self.createdAtMs = createdAtMs
        self.deliverAtMs = deliverAtMs
        self.spreadSeconds = spreadSeconds
        self.endedAtMs = endedAtMs
        self.matched = matched
        self.reached = reached
        self.online = online
        self.queued = queued
        self.dropped = dropped
        self.withoutSession = withoutSession
        self.denied = denied
        self.receipts = receipts
    }
}

/// Some pushes, the youngest first.
public struct PushPage: Codable, Sendable, Equatable {
    public var pushes: [PushStatus]
    /// The cursor of the next page; `nil` on the last.
    public var next: String?

    public init(pushes: [PushStatus] = [], next: String? = nil) {
        self.pushes = pushes
        self.next = next
    }
}

/// The clients that a push would reach now.
public struct PushPreview: Codable, Sendable, Equatable {
    public var matched: Int
    /// Matched clients that are connected,
    public var online: Int
    /// that are not, and have a session,
    public var offline: Int
    /// and without one.
    public var withoutSession: Int

    enum CodingKeys: String, CodingKey {
        case matched, online, offline
        case withoutSession = "without_session"
    }

    public init(matched: Int = 0, online: Int = 0, offline: Int = 0, withoutSession: Int = 0) {
        self.matched = matched
        self.online = online
        self.offline = offline
        self.withoutSession = withoutSession
    }
}
