import BrokerCore
import Glibc
import Structures
import TLS
import Threads
import Transport

/// Threads that take the steps of TLS handshakes: each costs hundreds of microseconds, which no
/// connected client may feel.
///
/// Handshakes for which we have signed go before newcomers: when there are more than can be made, what
/// was spent on them is not lost, and some are always completed.
final class HandshakeWorkers: Sendable {
    private let queue: RankedQueue<Reactor.HandshakeStep>
    private let count: Int
    /// Each thread says when it has ended.
    private let ended: WorkQueue<Int>

    /// A thread that has more to do tells so many outcomes together: each time wakes the shard, which
    /// may need this very processor. One that is about to sleep tells what it has.
    private static let outcomesAtOnce = 4

    /// `answer` is called on the workers' threads, and must not lose an outcome.
    init(
        count: Int, answer: @escaping @Sendable (Handle, TLSHandshake.Outcome) -> Void
    ) throws(ThreadFailure) {
        let ended = try WorkQueue<Int>(name: "hermes-tls")
        let queue = try RankedQueue<Reactor.HandshakeStep>(name: "hermes-tls")
        for number in 0..<count {
            try WorkerThread.start(name: "hermes-tls-\(number)") {
                var outcomes: [(Handle, TLSHandshake.Outcome)] = []
                func tell() {
                    for (connection, outcome) in outcomes { answer(connection, outcome) }
                    outcomes.removeAll(keepingCapacity: true)
                }
                while true {
                    var next = queue.takeNow()
                    if next == nil || outcomes.count == Self.outcomesAtOnce { tell() }
                    if next == nil { next = queue.take() }
                    guard let step = next else { break }
                    outcomes.append((step.connection, step.handshake.step()))
                }
                ended.post(number)
            }
        }
        self.ended = ended
        self.queue = queue
        self.count = count
    }

    /// Half of the processors, so that the other half is left to clients that are connected.
    static var usualCount: Int { max(1, min(8, sysconf(CInt(_SC_NPROCESSORS_ONLN)) / 2)) }

    /// Hands a step over. A connection has one step at a time, so that any thread may take it.
    func submit(_ step: Reactor.HandshakeStep) {
        queue.post(step, step.handshake.hasSigned ? .first : .second)
    }

    /// Takes no more steps: those that wait are dropped, those that were begun are finished.
    func close() { queue.close() }

    /// Waits until the threads have ended: their sockets may close afterwards.
    func waitUntilEnded() {
        var left = count
        while left > 0, let numbers = ended.takeAll() { left -= numbers.count }
    }
}
