import BrokerAPI
import BrokerRuntime
import Synchronization
import Testing

@Suite("The way to the broker's thread")
struct BrokerThreadTests {
    private final class Answers: Sendable {
        let refusals = Mutex<[BrokerUnavailable]>([])

        func note<Value>(_ answer: BrokerAnswer<Value>) {
            if case .failure(let error) = answer { refusals.withLock { $0.append(error) } }
        }

        var count: Int { refusals.withLock { $0.count } }
    }

    /// Nobody takes from the mailbox here, as during a turn that is very long.
    @Test("a queue full of requests refuses further ones, and lets bans and drains through")
    func urgent() throws {
        let broker = try BrokerThread()
        let answers = Answers()
        for _ in 0..<100_000 where answers.count == 0 {
            broker.send(.lockouts { answers.note($0) })
        }
        #expect(answers.refusals.withLock { $0 } == [.overloaded])
        broker.send(.setBans(BanTable([], generation: 2)) { answers.note($0) })
        broker.send(.startDrain(perSecond: 1, serverReference: nil) { answers.note($0) })
        broker.send(.endDrain { answers.note($0) })
        #expect(answers.count == 1)
        broker.send(.drainStatus { answers.note($0) })
        #expect(answers.count == 2)
    }
}
