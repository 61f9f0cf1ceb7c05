import Glibc
import HermesTesting
import Structures
import Synchronization
import Testing
import Transport

/// A thread of its own, because a test must not block the shared pool.
private final class TestThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private var thread: pthread_t = 0
    private let started: Bool

    init(_ run: @escaping @Sendable () -> Void) {
        let body = Unmanaged.passRetained(Body(run))
        let result = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, body.toOpaque())
        started = result == 0
        if !started { body.release() }
    }

    func join() {
        #expect(started)
        if started { pthread_join(thread, nil) }
    }
}

private struct Letter: Sendable {
    let sender: Int
    let number: Int
}

@Suite("Mailbox")
struct MailboxTests {
    @Test("hands over everything from four threads, in each one's order")
    func fourSenders() throws {
        let letters = 5_000
        let mailbox = try Mailbox<Letter>(capacity: 64)
        var reactor = try Reactor(pool: BytePool())
        try reactor.register(mailbox)
        let refusals = Atomic<Int>(0)
        let threads = (0..<4).map { sender in
            TestThread {
                for number in 0..<letters {
                    // Bounded by the reader, which stops when all has arrived or at its deadline.
                    while true {
                        switch mailbox.post(Letter(sender: sender, number: number)) {
                        case .accepted: break
                        case .closed: return
                        case .full:
                            refusals.add(1, ordering: .relaxed)
                            sched_yield()
                            continue
                        }
                        break
                    }
                }
            }
        }
        var next = [Int](repeating: 0, count: 4)
        var wakes = 0
        // A lost wake-up shows as two seconds without an event.
        while next != [Int](repeating: letters, count: 4) {
            guard try reactor.wait(milliseconds: 2_000) > 0 else {
                Issue.record("no wake with \(next) taken")
                break
            }
            wakes += 1
            guard case .mailbox = reactor.event(0) else {
                Issue.record("an event that is none of the mailbox")
                break
            }
            let taken = mailbox.take()
            #expect(taken.count <= 64)
            for letter in taken {
                #expect(letter.number == next[letter.sender], "of sender \(letter.sender)")
                next[letter.sender] = letter.number + 1
            }
        }
        _ = mailbox.close()
        for thread in threads { thread.join() }
        #expect(next == [Int](repeating: letters, count: 4))
        #expect(wakes <= 4 * letters)
        #expect(mailbox.take().isEmpty)
    }

    @Test("is full at its capacity, and takes more after it was emptied")
    func full() throws {
        let mailbox = try Mailbox<Int>(capacity: 3)
        for value in 0..<3 { #expect(mailbox.post(value) == .accepted) }
        for _ in 0..<2 { #expect(mailbox.post(9) == .full) }
        #expect(mailbox.take() == [0, 1, 2])
        #expect(mailbox.take() == [])
        #expect(mailbox.post(3) == .accepted)
        #expect(mailbox.take() == [3])
    }

    @Test("rejects messages once it is closed, and returns waiting ones")
    func closed() throws {
        let mailbox = try Mailbox<Int>(capacity: 3)
        #expect(mailbox.post(1) == .accepted)
        #expect(mailbox.close() == [1])
        #expect(mailbox.post(2) == .closed)
        #expect(mailbox.take() == [])
        #expect(mailbox.close() == [])
    }

    @Test("wakes its reader for the first message and keeps still afterwards")
    func wakes() throws {
        let mailbox = try Mailbox<Int>(capacity: 10)
        var reactor = try Reactor(pool: BytePool())
        try reactor.register(mailbox)
        #expect(try reactor.wait(milliseconds: 0) == 0)
        #expect(mailbox.post(1) == .accepted)
        #expect(mailbox.post(2) == .accepted)
        #expect(try reactor.wait(milliseconds: 1_000) == 1)
        guard case .mailbox = reactor.event(0) else {
            Issue.record("no event of the mailbox")
            return
        }
        #expect(mailbox.take() == [1, 2])
        #expect(try reactor.wait(milliseconds: 0) == 0)
    }

    @Test("wakes a reader that sleeps, from another thread")
    func wakesSleeper() throws {
        let mailbox = try Mailbox<Int>(capacity: 10)
        var reactor = try Reactor(pool: BytePool())
        try reactor.register(mailbox)
        let thread = TestThread { _ = mailbox.post(7) }
        #expect(try reactor.wait(milliseconds: 5_000) == 1)
        #expect(mailbox.take() == [7])
        thread.join()
    }
}
