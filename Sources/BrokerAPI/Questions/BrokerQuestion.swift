/// What the admin plane asks of a feature of the shard, or has it do. The type is the whole
/// declaration: its members are the question, ``Answer`` is the answer, and every question is refused
/// alike. The feature answers it in its folder of BrokerFeatures (`ShardQuestion`).
public protocol BrokerQuestion<Answer>: Sendable {
    associatedtype Answer: Sendable
}

/// A question of some type with the closure for its answer, which is called exactly once, on the
/// shard's thread.
public protocol AskedQuestion: Sendable {
    /// Answers with an error.
    func refuse(_ error: BrokerUnavailable)
}

public struct Asked<Question: BrokerQuestion>: AskedQuestion {
    public let question: Question
    public let reply: Reply<Question.Answer>

    public init(_ question: Question, reply: @escaping Reply<Question.Answer>) {
        self.question = question
        self.reply = reply
    }

    public func refuse(_ error: BrokerUnavailable) { reply(.failure(error)) }
}
