import Glibc
import Synchronization
import Testing

@testable import Threads

@Suite("Work queue", .serialized)
struct WorkQueueTests {
    @Test("every task arrives once, in the order of its thread", arguments: [1, 4])
    func delivery(threads: Int) throws {
        let queue = try WorkQueue<(thread: Int, number: Int)>(name: "test")
        let count = 20_000
        for thread in 0..<threads {
            try WorkerThread.start(name: "test-\(thread)") {
                for number in 0..<count { queue.post((thread, number)) }
            }
        }
        var next = [Int](repeating: 0, count: threads)
        while next.contains(where: { $0 < count }) {
            let tasks = try #require(queue.takeAll(waitMilliseconds: 20_000))
            try #require(!tasks.isEmpty, "the worker was not woken: \(next)")
            for task in tasks {
                try #require(next[task.thread] == task.number)
                next[task.thread] += 1
            }
        }
        #expect(queue.takeAll(waitMilliseconds: 0)?.isEmpty == true)
    }

    @Test("question and answer never wait for a wake-up that was lost")
    func pingPong() throws {
        let questions = try WorkQueue<Int>(name: "questions")
        let answers = try WorkQueue<Int>(name: "answers")
        try WorkerThread.start(name: "answers") {
            while let numbers = questions.takeAll() {
                for number in numbers { answers.post(number + 1) }
            }
            answers.close()
        }
        for number in 0..<20_000 {
            questions.post(number)
            try #require(answers.takeAll(waitMilliseconds: 20_000) == [number + 1])
        }
        questions.close()
        #expect(answers.takeAll(waitMilliseconds: 20_000) == nil)
    }

    @Test("a closed queue returns waiting items and rejects new ones")
    func closing() throws {
        let queue = try WorkQueue<Int>(name: "test")
        #expect(queue.post(1))
        #expect(queue.post(2))
        queue.close()
        #expect(!queue.post(3))
        #expect(queue.takeAll() == [1, 2])
        #expect(queue.takeAll() == nil)
    }

    @Test("closing wakes the worker that sleeps for ever")
    func closingWakes() throws {
        let queue = try WorkQueue<Int>(name: "test")
        let ended = try WorkQueue<Bool>(name: "ended")
        try WorkerThread.start(name: "sleeper") { ended.post(queue.takeAll() == nil) }
        #expect(ended.takeAll(waitMilliseconds: 20)?.isEmpty == true)
        queue.close()
        #expect(ended.takeAll(waitMilliseconds: 20_000) == [true])
    }

    @Test("waiting ends after its time")
    func timeout() throws {
        let queue = try WorkQueue<Int>(name: "test")
        #expect(queue.takeAll(waitMilliseconds: 1)?.isEmpty == true)
        #expect(queue.takeAll(waitMilliseconds: 0)?.isEmpty == true)
        queue.post(1)
        #expect(queue.takeAll(waitMilliseconds: 0) == [1])
    }

    @Test("a thread has its name, and leaves signals to others")
    func thread() throws {
        var mask = sigset_t()
        pthread_sigmask(SIG_BLOCK, nil, &mask)
        let wasBlocked = sigismember(&mask, SIGHUP)
        let results = try WorkQueue<(name: String, isBlocked: Bool)>(name: "results")
        try WorkerThread.start(name: "named") {
            var name = [UInt8](repeating: 0, count: 16)
            if let file = fopen("/proc/thread-self/comm", "r") {
                fread(&name, 1, name.count, file)
                fclose(file)
            }
            var mask = sigset_t()
            pthread_sigmask(SIG_BLOCK, nil, &mask)
            results.post(
                (
                    String(decoding: name.prefix { $0 != 10 }, as: UTF8.self),
                    sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGHUP) == 1
                ))
        }
        let result = try #require(results.takeAll(waitMilliseconds: 20_000)?.first)
        #expect(result.name == "named" && result.isBlocked)
        pthread_sigmask(SIG_BLOCK, nil, &mask)
        #expect(sigismember(&mask, SIGHUP) == wasBlocked)
    }
}
