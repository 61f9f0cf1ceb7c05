import Testing

@testable import Threads

@Suite("Ranked queue")
struct RankedQueueTests {
    @Test("tasks of the first rank go before all others, within a rank in order")
    func order() throws {
        let queue = try RankedQueue<Int>(name: "test")
        queue.post(1, .second)
        queue.post(2, .second)
        #expect(queue.take() == 1)
        queue.post(3, .second)
        queue.post(10, .first)
        queue.post(11, .first)
        #expect((0..<4).map { _ in queue.take() } == [10, 11, 2, 3])
    }

    @Test("a task is taken at once or not at all, in the same order")
    func now() throws {
        let queue = try RankedQueue<Int>(name: "test")
        #expect(queue.takeNow() == nil)
        queue.post(1, .second)
        queue.post(2, .first)
        #expect((0..<3).map { _ in queue.takeNow() } == [2, 1, nil])
        queue.post(3, .second)
        queue.close()
        #expect(queue.takeNow() == nil && queue.take() == nil)
    }

    @Test("closing drops waiting tasks and ends every worker")
    func closing() throws {
        let queue = try RankedQueue<Int>(name: "test")
        for task in 0..<1_000 { queue.post(task, task.isMultiple(of: 2) ? .first : .second) }
        #expect(queue.take() == 0)
        queue.close()
        for _ in 0..<3 { #expect(queue.take() == nil) }
        #expect(!queue.post(1, .first))
    }

    @Test("a worker that sleeps is woken for each task, and several share them")
    func workers() throws {
        let queue = try RankedQueue<Int>(name: "test")
        let done = try WorkQueue<Int>(name: "test")
        for number in 0..<2 {
            try WorkerThread.start(name: "test-\(number)") {
                while let task = queue.take() { done.post(task) }
                done.post(-1)
            }
        }
        for task in 0..<100 { queue.post(task, .second) }
        var taken: [Int] = []
        while taken.count < 100, let some = done.takeAll() { taken += some }
        queue.close()
        while taken.count < 102, let some = done.takeAll() { taken += some }
        #expect(taken.sorted() == [-1, -1] + Array(0..<100))
    }
}
