import HermesTesting
import Testing

@testable import Structures

@Suite("Timer wheel")
struct TimerWheelTests {
    /// One lap of the wheel, in milliseconds.
    static let lap = 4_096 * TimerWheel.tickMilliseconds

    @Test("fires every timer once, never early and at most 64 ms late", arguments: UInt64(1)...32)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var now = MonotonicTime(milliseconds: UInt64(random.number(in: 0...10_000_000)))
        var wheel = TimerWheel(now: now)
        // By payload: the wheel's index and the deadline.
        var pending: [UInt64: (index: UInt32, deadline: MonotonicTime)] = [:]
        var payload: UInt64 = 0
        for step in 0..<1_500 {
            switch random.number(in: 0...9) {
            case 0...3:
                payload += 1
                let deadline = randomDeadline(now, &random)
                pending[payload] = (wheel.schedule(payload, at: deadline), deadline)
            case 4:
                guard let (key, timer) = pending.randomElement(using: &random) else { continue }
                wheel.cancel(timer.index)
                pending[key] = nil
            case 5:
                guard let (key, timer) = pending.randomElement(using: &random) else { continue }
                let deadline = randomDeadline(now, &random)
                wheel.reschedule(timer.index, at: deadline)
                pending[key] = (timer.index, deadline)
            case 6:
                // Some due timers stay in the wheel for later cancellations.
                expire(&wheel, now, &pending, most: 2, "seed \(seed), step \(step)")
            default:
                now = now.advanced(byMilliseconds: randomSpan(&random))
                if random.once(in: 2) {
                    expire(&wheel, now, &pending, most: .max, "seed \(seed), step \(step)")
                    expectNoneOverdue(pending, now, "seed \(seed), step \(step)")
                }
            }
            #expect(wheel.count == pending.count)
            checkNextDeadline(wheel.nextDeadline, pending, now, "seed \(seed), step \(step)")
        }
        // All remaining timers expire after enough time.
        now = now.advanced(byMilliseconds: 100 * Self.lap)
        expire(&wheel, now, &pending, most: .max, "seed \(seed), at the end")
        #expect(pending.isEmpty && wheel.count == 0)
        #expect(wheel.nextDeadline == nil)
    }

    private func expire(
        _ wheel: inout TimerWheel, _ now: MonotonicTime,
        _ pending: inout [UInt64: (index: UInt32, deadline: MonotonicTime)], most: Int,
        _ comment: Comment
    ) {
        var popped = 0
        while popped < most, let payload = wheel.popExpired(now: now) {
            popped += 1
            guard let timer = pending.removeValue(forKey: payload) else {
                Issue.record("timer \(payload) fired twice or after its end: \(comment)")
                return
            }
            #expect(timer.deadline < now, "early: \(comment)")
        }
    }

    private func expectNoneOverdue(
        _ pending: [UInt64: (index: UInt32, deadline: MonotonicTime)], _ now: MonotonicTime,
        _ comment: Comment
    ) {
        for (_, timer) in pending {
            #expect(now.milliseconds(since: timer.deadline) < 64, "late: \(comment)")
        }
    }

    private func checkNextDeadline(
        _ next: MonotonicTime?, _ pending: [UInt64: (index: UInt32, deadline: MonotonicTime)],
        _ now: MonotonicTime, _ comment: Comment
    ) {
        guard let earliest = pending.values.map(\.deadline).min() else {
            #expect(next == nil, comment)
            return
        }
        guard let next else {
            Issue.record("\(pending.count) timers and no deadline: \(comment)")
            return
        }
        #expect(next.milliseconds <= max(earliest, now).milliseconds + 64, comment)
    }

    private func randomDeadline(
        _ now: MonotonicTime, _ random: inout SplitMix64
    ) -> MonotonicTime {
        switch random.number(in: 0...7) {
        case 0:
            // In the past already.
            let back = UInt64(random.number(in: 0...1_000))
            return MonotonicTime(milliseconds: now.milliseconds - min(back, now.milliseconds))
        case 1: return now
        case 2...4: return now.advanced(byMilliseconds: UInt64(random.number(in: 0...2_000)))
        case 5:
            return now.advanced(byMilliseconds: Self.lap + UInt64(random.number(in: 0...200)) - 100)
        case 6: return now.advanced(byMilliseconds: UInt64(random.number(in: 0...20)) * Self.lap)
        default: return now.advanced(byMilliseconds: UInt64(random.number(in: 0...400_000)))
        }
    }

    private func randomSpan(_ random: inout SplitMix64) -> UInt64 {
        switch random.number(in: 0...9) {
        case 0: UInt64(random.number(in: 1...5)) * Self.lap + UInt64(random.number(in: 0...200))
        case 1: UInt64(random.number(in: 0...400_000))
        case 2...4: UInt64(random.number(in: 0...64))
        default: UInt64(random.number(in: 0...1_000))
        }
    }

    @Test(
        "wakes exactly often enough when it is driven by its own deadlines",
        arguments: UInt64(1)...8)
    func driven(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var now = MonotonicTime(milliseconds: 5_000_000)
        var wheel = TimerWheel(now: now)
        var pending: [UInt64: (index: UInt32, deadline: MonotonicTime)] = [:]
        for payload in UInt64(0)..<200 {
            let deadline = now.advanced(byMilliseconds: UInt64(random.number(in: 0...2_000_000)))
            pending[payload] = (wheel.schedule(payload, at: deadline), deadline)
        }
        var wakes = 0
        while let next = wheel.nextDeadline {
            wakes += 1
            guard wakes < 5_000 else {
                Issue.record("a deadline that never comes, seed \(seed)")
                return
            }
            // A loop that sleeps until the wheel's deadline misses nothing and does not spin.
            #expect(next > now || wakes == 1)
            now = max(now, next)
            expire(&wheel, now, &pending, most: .max, "seed \(seed)")
            expectNoneOverdue(pending, now, "seed \(seed)")
        }
        #expect(pending.isEmpty)
        // 200 timers over at most 8 laps each.
        #expect(wakes <= 200 * 8)
    }

    @Test("counts deadlines to the millisecond at a slot's borders")
    func borders() {
        for offset in [UInt64(0), 1, 63, 64, 65, 127] {
            let start = MonotonicTime(milliseconds: 64_000)
            var wheel = TimerWheel(now: start)
            let deadline = start.advanced(byMilliseconds: offset)
            _ = wheel.schedule(9, at: deadline)
            var fired: UInt64?
            for wait in UInt64(0)...300 where fired == nil {
                if wheel.popExpired(now: start.advanced(byMilliseconds: wait)) != nil {
                    fired = wait
                }
            }
            #expect((offset + 1...offset + 64).contains(fired ?? 0), "deadline after \(offset) ms")
        }
    }

    @Test("a timer that is due and not yet handed out can be cancelled or moved")
    func dueNotPopped() throws {
        var now = MonotonicTime(milliseconds: 1_000)
        var wheel = TimerWheel(now: now)
        var timers: [UInt64: UInt32] = [:]
        for payload in UInt64(0)..<5 { timers[payload] = wheel.schedule(payload, at: now) }
        now = now.advanced(byMilliseconds: 200)
        // All five are due; one is handed out.
        let first = wheel.popExpired(now: now)
        let popped = try #require(first)
        timers[popped] = nil
        #expect(wheel.count == 4)
        let waiting = timers.keys.sorted()
        wheel.cancel(try #require(timers[waiting[1]]))
        let later = now.advanced(byMilliseconds: 10_000)
        wheel.reschedule(try #require(timers[waiting[2]]), at: later)
        var rest: Set<UInt64> = []
        while let payload = wheel.popExpired(now: now) { rest.insert(payload) }
        #expect(rest == [waiting[0], waiting[3]])
        #expect(wheel.count == 1)
        #expect(wheel.popExpired(now: later) == nil)
        #expect(wheel.popExpired(now: later.advanced(byMilliseconds: 64)) == waiting[2])
        #expect(wheel.nextDeadline == nil)
    }

    @Test("a clock that jumps by years fires everything once")
    func jump() {
        var wheel = TimerWheel(now: MonotonicTime(milliseconds: 0))
        for payload in UInt64(0)..<10_000 {
            _ = wheel.schedule(payload, at: MonotonicTime(milliseconds: payload * 100))
        }
        var fired: Set<UInt64> = []
        let later = MonotonicTime(milliseconds: 10 * 365 * 86_400_000)
        while let payload = wheel.popExpired(now: later) { fired.insert(payload) }
        #expect(fired.count == 10_000)
        #expect(wheel.count == 0)
    }

    @Test("a deadline that never comes does not disturb the others")
    func farAway() {
        var wheel = TimerWheel(now: MonotonicTime(milliseconds: 0))
        _ = wheel.schedule(1, at: MonotonicTime(milliseconds: UInt64.max))
        _ = wheel.schedule(2, at: MonotonicTime(milliseconds: 100))
        #expect(wheel.popExpired(now: MonotonicTime(milliseconds: 200)) == 2)
        #expect(wheel.popExpired(now: MonotonicTime(milliseconds: 50 * Self.lap)) == nil)
        #expect(wheel.count == 1)
        #expect(wheel.nextDeadline != nil)
    }

    @Test("time differences never go below zero, and spans round up")
    func time() {
        let early = MonotonicTime(milliseconds: 10)
        let late = early.advanced(byMilliseconds: 5)
        #expect(early < late && late.milliseconds(since: early) == 5)
        #expect(early.milliseconds(since: late) == 0)
        #expect(Duration.milliseconds(1_500).wholeMilliseconds == 1_500)
        #expect(Duration.microseconds(1).wholeMilliseconds == 1)
        #expect(Duration.nanoseconds(1_000_001).wholeMilliseconds == 2)
        #expect(Duration.zero.wholeMilliseconds == 0)
        #expect(Duration.milliseconds(-1).wholeMilliseconds == 0)
        #expect(Duration.seconds(-5).wholeMilliseconds == 0)
    }
}
