/// One subscription, with the client that has it.
public struct ListedSubscription: Codable, Sendable, Equatable {
    public var clientID: String
    public var userName: String?
    public var connected: Bool
    /// With `$share/` and the group's name for a shared one.
    public var filter: String
    /// The granted QoS.
    public var qos: Int

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case userName = "user_name"
        case connected, filter, qos
    }

    public init(clientID: String, userName: String?, connected: Bool, filter: String, qos: Int) {
        self.clientID = clientID
        self.userName = userName
        self.connected = connected
        self.filter = filter
        self.qos = qos
    }
}

/// Some subscriptions, those of one client together. A page may be short, or empty, although others
/// follow.
public struct SubscriptionPage: Codable, Sendable, Equatable {
    public var subscriptions: [ListedSubscription]
    /// The `cursor` of the next page; `nil` at the end.
    public var next: String?

    public init(subscriptions: [ListedSubscription], next: String?) {
        self.subscriptions = subscriptions
        self.next = next
    }
}

/// A client that would get a message on a topic now.
public struct TopicReceiver: Codable, Sendable, Equatable {
    /// What would become of the message.
    public enum Outcome: String, Codable, Sendable {
        /// It would be sent.
        case sent
        /// It would wait for the offline client.
        case queued
        /// It would be lost: the client is offline, and its session does not keep it.
        case lost
    }

    public var clientID: String
    public var userName: String?
    /// The QoS at which it would be delivered.
    public var qos: Int
    public var outcome: Outcome

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case userName = "user_name"
        case qos, outcome
    }

    public init(clientID: String, userName: String?, qos: Int, outcome: Outcome) {
        self.clientID = clientID
        self.userName = userName
        self.qos = qos
        self.outcome = outcome
    }
}

/// A shared subscription that matches a topic: one of its members gets each message.
public struct TopicCandidates: Codable, Sendable, Equatable {
    /// With `$share/` and the group's name.
    public var filter: String
    /// How many members the group has.
    public var members: Int
    /// The first members, those whose turn comes first in front, the connected ones before the offline
    /// ones. Each with what would become of the message if it were the one that gets it.
    public var candidates: [TopicReceiver]

    public init(filter: String, members: Int, candidates: [TopicReceiver]) {
        self.filter = filter
        self.members = members
        self.candidates = candidates
    }
}

/// The clients that a message on a topic would reach now; a shared group gives it to one member.
public struct TopicReceivers: Codable, Sendable, Equatable {
    public var topic: String
    /// Clients with a matching subscription that may read the topic, each once.
    public var matched: Int
    /// The first of them.
    public var receivers: [TopicReceiver]
    /// Shared subscriptions that match.
    public var groups: [String]
    /// The members of these groups that may read the topic.
    public var candidates: [TopicCandidates]

    public init(
        topic: String, matched: Int, receivers: [TopicReceiver], groups: [String],
        candidates: [TopicCandidates] = []
    ) {
        self.topic = topic
        self.matched = matched
        self.receivers = receivers
        self.groups = groups
        self.candidates = candidates
    }
}
