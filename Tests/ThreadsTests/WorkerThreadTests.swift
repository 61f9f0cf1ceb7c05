import Glibc
import Testing

@testable import Threads

@Suite("Worker thread", .serialized)
struct WorkerThreadTests {
    @Test(
        "a thread runs under the policy of its urgency",
        // Under another policy, chosen by who runs the tests, threads keep it.
        .enabled(if: sched_getscheduler(0) == SCHED_OTHER),
        arguments: [
            (WorkerThread.Urgency.prompt, SCHED_OTHER), (.usual, SCHED_OTHER),
            // SCHED_BATCH, which Glibc's module leaves out.
            (.patient, 3),
        ])
    func policy(urgency: WorkerThread.Urgency, expected: CInt) throws {
        let policies = try WorkQueue<CInt>(name: "policies")
        try WorkerThread.start(name: "test", urgency: urgency) {
            policies.post(sched_getscheduler(0))
        }
        let found = try #require(policies.takeAll(waitMilliseconds: 20_000))
        #expect(found == [expected])
    }
}
