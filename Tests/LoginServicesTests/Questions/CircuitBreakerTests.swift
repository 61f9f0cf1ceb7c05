import Testing

@testable import LoginServices

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
        let epoch = admit(&breaker, at: start)
        expect(breaker.noteFailure(epoch, at: start) == .none)
        expect(breaker.noteFailure(epoch, at: start) == .none)
        expect(breaker.noteAnswer(epoch) == .none)
        expect(breaker.noteFailure(epoch, at: start) == .none)
        expect(breaker.noteFailure(epoch, at: start) == .none)
        #expect(breaker.isClosed)
        expect(breaker.noteFailure(epoch, at: start) == .opened)
        #expect(!breaker.isClosed)
        expect(breaker.admit(at: after(4)) == nil)
    }

    @Test("lets one probe through after the pause, whose failure begins another pause")
    func probes() {
        var breaker = CircuitBreaker(mostFailures: 1, pause: .seconds(5))
        expect(breaker.noteFailure(admit(&breaker, at: start), at: start) == .opened)
        let probe = admit(&breaker, at: after(5))
        expect(breaker.admit(at: after(5)) == nil)
        expect(breaker.admit(at: after(100)) == nil)
        expect(breaker.noteFailure(probe, at: after(6)) == .none)
        expect(breaker.admit(at: after(10)) == nil)
        let other = admit(&breaker, at: after(11))
        expect(breaker.noteAnswer(other) == .closed)
        #expect(breaker.isClosed)
        expect(breaker.admit(at: after(11)) == other)
    }

    @Test("outcomes of questions from before it opened change nothing, not even during a probe")
    func late() {
        var breaker = CircuitBreaker(mostFailures: 1, pause: .seconds(5))
        let epoch = admit(&breaker, at: start)
        expect(breaker.noteFailure(epoch, at: start) == .opened)
        expect(breaker.noteFailure(epoch, at: after(4)) == .none)
        expect(breaker.noteAnswer(epoch) == .none)
        #expect(!breaker.isClosed)
        let probe = admit(&breaker, at: after(5))
        expect(breaker.noteFailure(epoch, at: after(6)) == .none)
        expect(breaker.noteAnswer(epoch) == .none)
        #expect(!breaker.isClosed)
        expect(breaker.noteAnswer(probe) == .closed)
        expect(breaker.noteFailure(epoch, at: after(7)) == .none)
        #expect(breaker.isClosed)
    }

    private func admit(_ breaker: inout CircuitBreaker, at time: ContinuousClock.Instant) -> UInt64
    {
        let epoch = breaker.admit(at: time)
        #expect(epoch != nil)
        return epoch ?? .max
    }
}
