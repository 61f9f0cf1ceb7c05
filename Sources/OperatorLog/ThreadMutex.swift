import Glibc

/// A mutex with two conditions: there is work, and there was progress.
///
/// `Synchronization.Mutex` has no conditions. Unchecked: the pointers never change, and any thread
/// may call pthread functions on them.
final class ThreadMutex: @unchecked Sendable {
    enum Condition {
        case work
        case progress
    }

    /// A time of the monotonic clock.
    struct Deadline {
        fileprivate var time = timespec()

        init(after duration: Duration) {
            clock_gettime(CLOCK_MONOTONIC, &time)
            let (seconds, attoseconds) = max(duration, .zero).components
            let nanoseconds = time.tv_nsec + Int(attoseconds / 1_000_000_000)
            // A century is enough and does not overflow.
            time.tv_sec += Int(min(seconds, 3_155_760_000)) + nanoseconds / 1_000_000_000
            time.tv_nsec = nanoseconds % 1_000_000_000
        }
    }

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let work = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let progress = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        Self.check(pthread_mutex_init(mutex, nil), "pthread_mutex_init")
        var attributes = pthread_condattr_t()
        Self.check(pthread_condattr_init(&attributes), "pthread_condattr_init")
        Self.check(
            pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), "pthread_condattr_setclock")
        Self.check(pthread_cond_init(work, &attributes), "pthread_cond_init")
        Self.check(pthread_cond_init(progress, &attributes), "pthread_cond_init")
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(progress)
        pthread_cond_destroy(work)
        pthread_mutex_destroy(mutex)
        progress.deallocate()
        work.deallocate()
        mutex.deallocate()
    }

    func withLock<Result>(_ body: () -> Result) -> Result {
        Self.check(pthread_mutex_lock(mutex), "pthread_mutex_lock")
        defer { Self.check(pthread_mutex_unlock(mutex), "pthread_mutex_unlock") }
        return body()
    }

    /// Wakes all threads waiting for the condition; without any, costs no system call.
    func signal(_ condition: Condition) {
        Self.check(pthread_cond_broadcast(pointer(condition)), "pthread_cond_broadcast")
    }

    /// Releases the lock, waits, and takes it again. May return without a signal: test in a loop.
    func wait(_ condition: Condition) {
        Self.check(pthread_cond_wait(pointer(condition), mutex), "pthread_cond_wait")
    }

    /// The same; false after the deadline.
    func wait(_ condition: Condition, until deadline: Deadline) -> Bool {
        var time = deadline.time
        let code = pthread_cond_timedwait(pointer(condition), mutex, &time)
        if code == ETIMEDOUT { return false }
        Self.check(code, "pthread_cond_timedwait")
        return true
    }

    private func pointer(_ condition: Condition) -> UnsafeMutablePointer<pthread_cond_t> {
        switch condition {
        case .work: work
        case .progress: progress
        }
    }

    /// These calls fail only by misuse.
    private static func check(_ code: CInt, _ call: StaticString) {
        precondition(code == 0, "\(call) failed with error \(code)")
    }
}
