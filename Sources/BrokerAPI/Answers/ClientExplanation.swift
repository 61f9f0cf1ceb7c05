/// Answer of `GET /v1/clients/{id}/explain`: in plain words what a client is doing, and why it may
/// not have got a message.
public struct ClientExplanation: Codable, Sendable, Equatable {
    public var clientID: String
    /// False when the broker has neither a connection nor a session nor a memory of it.
    public var known: Bool
    /// Sentences about the message asked about come first, then the most general. Parts that clients have
    /// chosen are as they are, without escapes.
    public var sentences: [String]
    /// What happened to it lately, the newest first.
    public var events: [ClientEvent]

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case known, sentences, events
    }

    public init(clientID: String, known: Bool, sentences: [String], events: [ClientEvent]) {
        self.clientID = clientID
        self.known = known
        self.sentences = sentences
        self.events = events
    }
}
