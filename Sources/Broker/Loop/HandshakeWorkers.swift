import Glibc
import Reactor
import Structures
import TLS
import Threads

/// Threads that take the steps of TLS handshakes: each costs hundreds of microseconds, which no
/// connected client may feel.
final class HandshakeWorkers: Sendable {
    private let queues: [WorkQueue<Reactor.HandshakeStep>]
    /// Each thread says when it has ended.
    private let ended: WorkQueue<Int>

    /// `answer` is called on the workers' threads, and must not lose an outcome.
    init(
        count: Int, answer: @escaping @Sendable (Handle, TLSHandshake.Outcome) -> Void
    ) throws(ThreadFailure) {
        precondition(count > 0, "\(count) threads for handshakes")
        let ended = try WorkQueue<Int>(name: "hermes-tls")
        self.ended = ended
        var queues: [WorkQueue<Reactor.HandshakeStep>] = []
        for number in 0..<count {
            let queue = try WorkQueue<Reactor.HandshakeStep>(name: "hermes-tls-\(number)")
            try WorkerThread.start(name: "hermes-tls-\(number)") {
                while let steps = queue.takeAll() {
                    for step in steps { answer(step.connection, step.handshake.step()) }
                }
                ended.post(number)
            }
            queues.append(queue)
        }
        self.queues = queues
    }

    /// Half of the processors, so that the other half is left to clients that are connected.
    static var usualCount: Int { max(1, min(8, sysconf(CInt(_SC_NPROCESSORS_ONLN)) / 2)) }

    /// Hands a step over; all steps of a connection go to the same thread.
    func submit(_ step: Reactor.HandshakeStep) {
        queues[Int(step.connection.index) % queues.count].post(step)
    }

    /// Takes no more steps; those that wait are still taken.
    func close() {
        for queue in queues { queue.close() }
    }

    /// Waits until the threads have ended: their sockets may close afterwards.
    func waitUntilEnded() {
        var left = queues.count
        while left > 0, let numbers = ended.takeAll() { left -= numbers.count }
    }
}
