import BrokerCore
import BrokerFeatures
import Glibc
import Structures
import TLS
import Threads
import Transport

/// Threads for the steps of TLS handshakes, each of which takes hundreds of microseconds.
///
/// Handshakes that already have a signature come before new ones. Under overload this work is not
/// wasted, and some handshakes always complete.
final class HandshakeWorkers: Sendable {
    private let queue: RankedQueue<Reactor.HandshakeStep>
    private let count: Int
    /// Each thread adds its number when it ends.
    private let ended: WorkQueue<Int>

    /// Results that a busy thread reports together, because each report wakes the shard, perhaps on
    /// the same processor. A thread reports everything before it sleeps.
    private static let outcomesAtOnce = 4

    /// Calls `answer` on the workers' threads; it must not lose a result.
    init(
        count: Int, answer: @escaping @Sendable (Handle, TLSHandshake.Outcome) -> Void
    ) throws(ThreadFailure) {
        let ended = try WorkQueue<Int>(name: "hermes-tls")
        let queue = try RankedQueue<Reactor.HandshakeStep>(name: "hermes-tls")
        for number in 0..<count {
            try WorkerThread.start(name: "hermes-tls-\(number)", urgency: .patient) {
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

    /// Half of the processors, from 1 to 8; the others serve connected clients.
    static var usualCount: Int { max(1, min(8, sysconf(CInt(_SC_NPROCESSORS_ONLN)) / 2)) }

    /// Submits a step to any thread; a connection has at most one.
    func submit(_ step: Reactor.HandshakeStep) {
        queue.post(step, step.handshake.hasSigned ? .first : .second)
    }

    /// Drops waiting steps; running ones finish.
    func close() { queue.close() }

    /// Waits until the threads have ended, after which sockets may be closed.
    func waitUntilEnded() {
        var left = count
        while left > 0, let numbers = ended.takeAll() { left -= numbers.count }
    }
}
