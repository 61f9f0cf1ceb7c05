import Testing

@testable import BrokerCore

@Suite("Commits and their answers")
struct CommitLogTests {
    @Test("a commit that waits for two answers is complete with the second")
    func twoAnswers() {
        var log = CommitLog()
        log.add(1, .follower(7), answers: 2)
        log.add(2, .follower(8))
        let first = log.complete(1)
        #expect(Self.follower(first) == nil)
        let isEarly = log.isCommitted(1)
        #expect(!isEarly)
        let second = Self.follower(log.complete(2))
        #expect(second == 8)
        let (isSecond, areBoth) = (log.isCommitted(2), log.areCommitted(through: 2))
        #expect(isSecond && !areBoth)
        let third = Self.follower(log.complete(1))
        #expect(third == 7)
        let (areAll, pending) = (log.areCommitted(through: 2), log.pendingCount)
        #expect(areAll && pending == 0)
    }

    private static func follower(_ action: CommitLog.Action?) -> UInt64? {
        guard case .follower(let number) = action else { return nil }
        return number
    }
}
