import CLinux
import Glibc

/// A thread, or what it needs, that the system did not give.
public struct ThreadFailure: Error, Hashable, Sendable, CustomStringConvertible {
    public let name: String
    /// The value of `errno`.
    public let code: CInt

    public var description: String {
        "cannot start thread \(name): \(String(cString: strerror(code)))"
    }
}

/// A named thread for a body that ends by itself; signals are left to the main thread.
public enum WorkerThread {
    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// `name` has at most 15 bytes, as the kernel's.
    public static func start(
        name: String, _ run: @escaping @Sendable () -> Void
    ) throws(ThreadFailure) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        let body = Unmanaged.passRetained(Body(name: name, run: run))
        // The thread begins with the mask of whoever makes it.
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
