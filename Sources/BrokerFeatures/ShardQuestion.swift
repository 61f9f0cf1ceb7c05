import BrokerAPI
import BrokerCore

/// A question of the admin plane that a feature answers.
protocol ShardQuestion: BrokerQuestion {
    /// Calls `reply` exactly once, now or when what it waits for is stored.
    func ask(_ shard: inout Shard, reply: @escaping Reply<Answer>)
}

/// A question with its closure, of which the shard knows no type.
protocol ShardCommand {
    func run(_ shard: inout Shard)
}

extension Asked: ShardCommand where Question: ShardQuestion {
    func run(_ shard: inout Shard) { question.ask(&shard, reply: reply) }
}

extension Shard {
    /// Has the feature answer that a question is for. `Tests/ArchitectureTests` holds that there is one
    /// for each question.
    public mutating func answer(_ asked: any AskedQuestion) {
        guard let command = asked as? any ShardCommand else {
            preconditionFailure("no feature answers \(type(of: asked))")
        }
        command.run(&self)
    }
}
