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
    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Starts a thread that ends when `run` returns. `name` has at most 15 bytes, the kernel's
    /// limit.
    public static func start(
        name: String, _ run: @escaping @Sendable () -> Void
    ) throws(ThreadFailure) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        let body = Unmanaged.passRetained(Body(name: name, run: run))
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
                body.run()
                return nil
            }, body.toOpaque())
        guard code == 0 else {
            body.release()
            throw ThreadFailure(name: name, code: code)
        }
    }
}
