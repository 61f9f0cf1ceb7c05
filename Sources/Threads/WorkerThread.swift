import CLinux
import Glibc

/// The system did not give a thread, or the descriptor that a queue needs.
public struct ThreadFailure: Error, Hashable, Sendable, CustomStringConvertible {
    public let name: String
    /// The value of `errno`.
    public let code: CInt

    public var description: String {
        "cannot start thread \(name): \(String(cString: strerror(code)))"
    }
}

/// Starts named, detached threads. All signals are blocked in them and stay with the main thread.
public enum WorkerThread {
    /// The order in which the kernel runs threads that are ready at the same time. Each gets its
    /// fair share of the processors, whatever its urgency.
    public enum Urgency: Sendable {
        /// Works briefly and often, and interrupts others when it wakes up. Linux 6.12 or newer; as
        /// ``usual`` before.
        case prompt
        case usual
        /// Works long, and interrupts nobody when it wakes up.
        case patient

        fileprivate func apply() {
            switch self {
            case .prompt: hermes_schedule_thread(0, 100_000)
            // A thread inherits the slice of the one that starts it.
            case .usual: hermes_schedule_thread(0, 0)
            case .patient: hermes_schedule_thread(1, 10_000_000)
            }
        }
    }

    private final class Body {
        let name: String
        let urgency: Urgency
        let run: @Sendable () -> Void

        init(name: String, urgency: Urgency, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.urgency = urgency
            self.run = run
        }
    }

    /// Starts a thread that ends when `run` returns. `name` has at most 15 bytes, the kernel's
    /// limit.
    public static func start(
        name: String, urgency: Urgency = .usual, _ run: @escaping @Sendable () -> Void
    ) throws(ThreadFailure) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        let body = Unmanaged.passRetained(Body(name: name, urgency: urgency, run: run))
        // A new thread inherits the signal mask of the thread that starts it.
        var all = sigset_t()
        var former = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &former)
        defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
        var thread = pthread_t()
        let code = pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument else { return nil }
                let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                hermes_name_thread(body.name)
                body.urgency.apply()
                body.run()
                return nil
            }, body.toOpaque())
        guard code == 0 else {
            body.release()
            throw ThreadFailure(name: name, code: code)
        }
    }
}
