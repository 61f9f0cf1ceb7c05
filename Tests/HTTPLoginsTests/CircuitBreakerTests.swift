import Testing

@testable import HTTPLogins

@Suite("Circuit breaker")
struct CircuitBreakerTests {
    private let start = ContinuousClock.now
    private func after(_ seconds: Int) -> ContinuousClock.Instant {
        start.advanced(by: .seconds(seconds))
    }

    /// `#expect` takes no call that changes what it is called on.
    private func expect(_ isTrue: Bool, _ location: SourceLocation = #_sourceLocation) {
        #expect(isTrue, sourceLocation: location)
    }

    @Test("opens after failures in a row, and an answer between them begins anew")
    func opens() {
        var breaker = CircuitBreaker(mostFailures: 3, pause: .seconds(5))
        expect(breaker.noteFailure(at: start) == .none)
        expect(breaker.noteFailure(at: start) == .none)
        expect(breaker.noteAnswer() == .none)
        expect(breaker.noteFailure(at: start) == .none)
        expect(breaker.noteFailure(at: start) == .none)
        #expect(breaker.isClosed)
        expect(breaker.noteFailure(at: start) == .opened)
        #expect(!breaker.isClosed)
        expect(!breaker.admits(at: after(4)))
    }

    @Test("lets one probe through after the pause, whose failure begins another pause")
    func probes() {
        var breaker = CircuitBreaker(mostFailures: 1, pause: .seconds(5))
        expect(breaker.noteFailure(at: start) == .opened)
        expect(breaker.admits(at: after(5)))
        expect(!breaker.admits(at: after(5)))
        expect(!breaker.admits(at: after(100)))
        expect(breaker.noteFailure(at: after(6)) == .none)
        expect(!breaker.admits(at: after(10)))
        expect(breaker.admits(at: after(11)))
        expect(breaker.noteAnswer() == .closed)
        #expect(breaker.isClosed)
        expect(breaker.admits(at: after(11)))
    }

    @Test("outcomes of questions from before it opened neither close nor prolong it")
    func late() {
        var breaker = CircuitBreaker(mostFailures: 1, pause: .seconds(5))
        expect(breaker.noteFailure(at: start) == .opened)
        expect(breaker.noteFailure(at: after(4)) == .none)
        expect(breaker.noteAnswer() == .none)
        #expect(!breaker.isClosed)
        expect(breaker.admits(at: after(5)))
    }
}
