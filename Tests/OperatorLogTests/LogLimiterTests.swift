import Testing

@testable import OperatorLog

@Suite("LogLimiter")
struct LogLimiterTests {
    private typealias HeldBack = LogLimiter.HeldBack

    @Test("logs the first event, then one per interval with the number held back")
    func oncePerInterval() {
        var limiter = LogLimiter()
        #expect(limiter.admit("a", atMilliseconds: 5) == 0)
        #expect(limiter.admit("a", atMilliseconds: 5) == nil)
        #expect(limiter.admit("a", atMilliseconds: 1_004) == nil)
        #expect(limiter.admit("a", atMilliseconds: 1_005) == 2)
        #expect(limiter.admit("a", atMilliseconds: 1_006) == nil)
        #expect(limiter.admit("a", atMilliseconds: 90_000) == 1)
        #expect(limiter.admit("a", atMilliseconds: 91_000) == 0)
    }

    @Test("logs the first event at time zero and at the end of time")
    func edges() {
        var limiter = LogLimiter()
        #expect(limiter.admit("a", every: .seconds(10), atMilliseconds: 0) == 0)
        #expect(limiter.admit("a", every: .seconds(10), atMilliseconds: 9_999) == nil)
        #expect(limiter.admit("a", every: .seconds(10), atMilliseconds: .max) == 1)
        #expect(limiter.admit("a", every: .seconds(10), atMilliseconds: .max) == nil)
    }

    @Test("suppresses while the clock runs backwards")
    func backwards() {
        var limiter = LogLimiter()
        #expect(limiter.admit("a", every: .milliseconds(10), atMilliseconds: 100) == 0)
        #expect(limiter.admit("a", every: .milliseconds(10), atMilliseconds: 50) == nil)
        #expect(limiter.admit("a", every: .milliseconds(10), atMilliseconds: 110) == 1)
    }

    @Test("an interval of zero logs everything")
    func zero() {
        var limiter = LogLimiter()
        for _ in 0..<3 { #expect(limiter.admit("a", every: .zero, atMilliseconds: 7) == 0) }
    }

    @Test("copies are independent")
    func valueSemantics() {
        var first = LogLimiter()
        var second = first
        #expect(first.admit("a", atMilliseconds: 1) == 0)
        #expect(second.admit("a", atMilliseconds: 1) == 0)
    }

    @Test("no key hides another")
    func keys() {
        var limiter = LogLimiter()
        for key in ["a", "b", ""] { #expect(limiter.admit(key, atMilliseconds: 1) == 0) }
        #expect(limiter.admit("b", atMilliseconds: 2) == nil)
        #expect(limiter.admit("a", atMilliseconds: 1_001) == 0)
        #expect(limiter.admit("b", atMilliseconds: 1_001) == 1)
    }

    @Test("keys have a bound, beyond which new ones share an interval")
    func bound() {
        var limiter = LogLimiter(maximumKeys: 64)
        for kind in 0..<64 { #expect(limiter.admit("\(kind)", atMilliseconds: 0) == 0) }
        #expect(limiter.admit("one more", atMilliseconds: 0) == 0)
        #expect(limiter.admit("another", atMilliseconds: 0) == nil)
        #expect(limiter.admit("another", atMilliseconds: 999) == nil)
        #expect(limiter.admit("0", atMilliseconds: 1_000) == 0)
        #expect(limiter.admit("another", atMilliseconds: 1_000) == 2)
        #expect(limiter.admit("63", atMilliseconds: 1_000) == 0)
    }

    @Test("a flood of invented keys has one line per interval")
    func inventedKeys() {
        var limiter = LogLimiter(maximumKeys: 64)
        for key in 0..<64 { _ = limiter.admit(key, atMilliseconds: 0) }
        var lines = 0
        for key in 64..<10_064 {
            let now = UInt64(key - 64) / 10
            for _ in 0..<2 where limiter.admit(key, atMilliseconds: now) != nil { lines += 1 }
        }
        #expect(lines == 1)
    }

    // MARK: Groups

    /// Outside of `#expect`, which cannot change what it looks at.
    private func note(
        _ limiter: inout LogLimiter, _ key: String, of group: String, at milliseconds: UInt64
    ) -> HeldBack? {
        limiter.admit(key, every: .seconds(60), in: group, atMilliseconds: milliseconds)
    }

    @Test("one a minute for each key, with how many were left out")
    func minute() {
        var limiter = LogLimiter()
        #expect(note(&limiter, "a", of: "wrong", at: 0) == HeldBack(ofKey: 0, ofGroup: 0))
        for _ in 0..<7 { #expect(note(&limiter, "a", of: "wrong", at: 58_000) == nil) }
        #expect(note(&limiter, "b", of: "wrong", at: 58_000) == HeldBack(ofKey: 0, ofGroup: 7))
        #expect(note(&limiter, "a", of: "wrong", at: 60_000) == HeldBack(ofKey: 7, ofGroup: 0))
        #expect(note(&limiter, "a", of: "wrong", at: 61_000) == nil)
    }

    @Test("no group and no key hides another, also when both have one name")
    func groups() {
        var limiter = LogLimiter()
        let groups = ["missing", "unknown", "expired", "scope"]
        for group in groups { #expect(note(&limiter, group, of: group, at: 0) != nil) }
        #expect(note(&limiter, "older", of: "expired", at: 1_000) != nil)
        for group in groups { #expect(note(&limiter, group, of: group, at: 2_000) == nil) }
    }

    @Test("one a second over all keys of a group; a key that came too soon has its line later")
    func second() {
        var limiter = LogLimiter()
        #expect(note(&limiter, "a", of: "wrong", at: 0) != nil)
        for milliseconds: UInt64 in [0, 500, 999] {
            #expect(note(&limiter, "b", of: "wrong", at: milliseconds) == nil)
        }
        #expect(note(&limiter, "a", of: "wrong", at: 999) == nil)
        #expect(note(&limiter, "b", of: "wrong", at: 1_000) == HeldBack(ofKey: 3, ofGroup: 4))
    }

    @Test("the key that was unused for longest is forgotten, the group is not")
    func forgotten() {
        var limiter = LogLimiter(maximumKeys: 1_024)
        #expect(note(&limiter, "first", of: "wrong", at: 0) != nil)
        for number: UInt64 in 1...1_024 {
            _ = note(&limiter, "\(number)", of: "wrong", at: number)
        }
        // Forgotten, so it begins anew.
        #expect(note(&limiter, "first", of: "wrong", at: 3_000)?.ofKey == 0)
        #expect(note(&limiter, "another", of: "wrong", at: 3_999) == nil)
    }
}
