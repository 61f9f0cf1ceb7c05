import BrokerAPI
import Synchronization

/// The answers to commands of the admin plane, in the order in which they came.
package final class Answers<Value: Sendable>: Sendable {
    private let received = Mutex<[BrokerAnswer<Value>]>([])

    package init() {}

    package var values: [BrokerAnswer<Value>] { received.withLock { $0 } }
    /// The last answer; `nil` without one, and for a failure.
    package var last: Value? { try? values.last?.get() }
    /// Hand this to a command.
    package var reply: Reply<Value> {
        { answer in self.received.withLock { $0.append(answer) } }
    }
}
