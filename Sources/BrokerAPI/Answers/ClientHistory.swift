/// What happened to a client lately, the newest first.
public struct ClientHistory: Codable, Sendable, Equatable {
    public var clientID: String
    public var events: [ClientEvent]
    /// Bans in force of the client identifier, and of the users and addresses in ``events``.
    public var bans: [BanModel]
    /// Locks after wrong passwords at those addresses, of those users or of all.
    public var lockouts: [Lockout]

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case events, bans, lockouts
    }

    public init(
        clientID: String, events: [ClientEvent], bans: [BanModel] = [], lockouts: [Lockout] = []
    ) {
        self.clientID = clientID
        self.events = events
        self.bans = bans
        self.lockouts = lockouts
    }
}

/// Something that happened to a client, once or several times in a row.
public struct ClientEvent: Codable, Sendable, Equatable {
    public enum Kind: String, Codable, Sendable, CaseIterable, BitwiseCopyable {
        /// A CONNECT was accepted.
        case connected
        /// The connection ended.
        case disconnected
        /// A CONNECT was refused.
        case refused
        /// Messages for the client were lost.
        case lostMessages = "lost_messages"
        /// A filter was refused at a limit.
        case filterRefused = "filter_refused"
        /// The access rules denied something.
        case denied
        /// The session expired.
        case expired
        /// The push service says that the client's device is gone, which was forgotten.
        case deviceGone = "device_gone"
        /// The push service refused the client's device, which is not woken until it registers again.
        case deviceSetAside = "device_set_aside"
        /// Connections came and went again and again; a trouble, and no event of a history.
        case flapping
        /// The session was ended by an operator, or by the client with a clean session.
        case sessionEnded = "session_ended"
    }

    public var kind: Kind
    /// UNIX times in milliseconds of the first and the last one in a row.
    public var firstMs: Int64
    public var lastMs: Int64
    /// How many in a row; of lost messages their number.
    public var count: UInt64
    /// Why it ended, was refused or lost, which limit was met, or which action was denied; for an
    /// accepted CONNECT whether the session was there (`resumed`) or is new (`new`); for an expired
    /// session the limit; for an ended one who ended it (`operator`, `clean_session`).
    public var reason: String
    /// The peer's address with its port; `nil` if it is not known.
    public var address: String?
    /// The user name, of a CONNECT; `nil` without one.
    public var userName: String?
    /// A topic name or filter; `nil` without one. A long one is cut.
    public var topic: String?
    /// A clause that says more than the reason, such as "its token expired at
    /// 2026-11-25T02:00:00Z"; `nil` without one. A long one is cut.
    public var detail: String?

    enum CodingKeys: String, CodingKey {
        case kind
        case firstMs = "first_at_ms"
        case lastMs = "last_at_ms"
        case count, reason, address
        case userName = "user_name"
        case topic, detail
    }

    public init(
        kind: Kind, firstMs: Int64, lastMs: Int64, count: UInt64, reason: String,
        address: String? = nil, userName: String? = nil, topic: String? = nil,
        detail: String? = nil
    ) {
        self.kind = kind
        self.firstMs = firstMs
        self.lastMs = lastMs
        self.count = count
        self.reason = reason
        self.address = address
        self.userName = userName
        self.topic = topic
        self.detail = detail
    }
}
