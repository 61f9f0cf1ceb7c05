/// Whether a client may get messages of a topic; `nil` without a session. A login that the broker
/// has forgotten in a restart is not asked.
public struct AskReadRight: BrokerQuestion {
    public typealias Answer = ReadRight?

    public let clientID: String
    public let topic: String

    public init(clientID: String, topic: String) {
        self.clientID = clientID
        self.topic = topic
    }
}
