import Testing

@testable import OperatorLog

@Suite("LogLimiter")
struct LogLimiterTests {
    @Test("logs the first event, then one per interval with the number suppressed")
    func oncePerInterval() {
        var limiter = LogLimiter(intervalMilliseconds: 1_000)
        #expect(limiter.admit(atMilliseconds: 5) == .log(suppressed: 0))
        #expect(limiter.admit(atMilliseconds: 5) == .suppress)
        #expect(limiter.admit(atMilliseconds: 1_004) == .suppress)
        #expect(limiter.admit(atMilliseconds: 1_005) == .log(suppressed: 2))
        #expect(limiter.admit(atMilliseconds: 1_006) == .suppress)
        #expect(limiter.admit(atMilliseconds: 90_000) == .log(suppressed: 1))
        #expect(limiter.admit(atMilliseconds: 91_000) == .log(suppressed: 0))
    }

    @Test("logs the first event at time zero and at the end of time")
    func edges() {
        var limiter = LogLimiter()
        #expect(limiter.admit(atMilliseconds: 0) == .log(suppressed: 0))
        #expect(limiter.admit(atMilliseconds: 9_999) == .suppress)
        #expect(limiter.admit(atMilliseconds: .max) == .log(suppressed: 1))
        #expect(limiter.admit(atMilliseconds: .max) == .suppress)
    }

    @Test("suppresses while the clock runs backwards")
    func backwards() {
        var limiter = LogLimiter(intervalMilliseconds: 10)
        #expect(limiter.admit(atMilliseconds: 100) == .log(suppressed: 0))
        #expect(limiter.admit(atMilliseconds: 50) == .suppress)
        #expect(limiter.admit(atMilliseconds: 110) == .log(suppressed: 1))
    }

    @Test("an interval of zero logs everything")
    func zero() {
        var limiter = LogLimiter(intervalMilliseconds: 0)
        for _ in 0..<3 { #expect(limiter.admit(atMilliseconds: 7) == .log(suppressed: 0)) }
    }

    @Test("copies are independent")
    func valueSemantics() {
        var first = LogLimiter()
        var second = first
        #expect(first.admit(atMilliseconds: 1) == .log(suppressed: 0))
        #expect(second.admit(atMilliseconds: 1) == .log(suppressed: 0))
    }
}
