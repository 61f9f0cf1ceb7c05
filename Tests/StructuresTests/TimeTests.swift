import Structures
import Testing

@Suite("TimeHistogram and RecentMaximum")
struct TimeTests {
    @Test("a histogram's bounds begin where it is told and double")
    func bounds() {
        let coarse = TimeHistogram().cumulative.map(\.bound)
        #expect(coarse.prefix(3) == [0.000_5, 0.001, 0.002])
        #expect(coarse.last == 16.384)
        let fine = TimeHistogram(.fiftyMicroseconds).cumulative.map(\.bound)
        #expect(fine.prefix(3) == [0.000_05, 0.000_1, 0.000_2])
        #expect(fine.last == 1.638_4)
    }

    @Test(
        "a span counts below its bound, at any multiple of it",
        arguments: [
            (0, 0), (49, 0), (50, 1), (99, 1), (100, 2), (1_638_399, 15), (1_638_400, 16),
            (UInt64.max, 16),
        ] as [(UInt64, Int)])
    func buckets(microseconds: UInt64, bucket: Int) {
        var times = TimeHistogram(.fiftyMicroseconds)
        times.add(microseconds: microseconds, count: 3)
        let below = times.cumulative.map(\.count)
        #expect(below == (0..<TimeHistogram.boundCount).map { $0 >= bucket ? 3 : 0 })
        #expect(times.count == 3)
    }

    @Test("spans of one length add up like so many single ones")
    func counts() {
        var (together, single) = (TimeHistogram(), TimeHistogram())
        together.add(microseconds: 700, count: 5)
        for _ in 0..<5 { single.add(microseconds: 700) }
        #expect(together == single)
        #expect(together.seconds == 0.003_5)
        #expect(together != TimeHistogram(.fiftyMicroseconds))
    }

    @Test("the largest value of the last minute counts, for 60 to 70 seconds")
    func recent() {
        var maximum = RecentMaximum()
        let begin = MonotonicTime(milliseconds: 1_000_005)
        #expect(maximum.value(at: begin) == 0)
        maximum.add(7, at: begin)
        maximum.add(3, at: begin.advanced(byMilliseconds: 20_000))
        #expect(maximum.value(at: begin.advanced(byMilliseconds: 60_000)) == 7)
        #expect(maximum.value(at: begin.advanced(byMilliseconds: 70_000)) == 3)
        #expect(maximum.value(at: begin.advanced(byMilliseconds: 100_000)) == 0)
        // A value long after the others clears them.
        maximum.add(2, at: begin.advanced(byMilliseconds: 1_000_000))
        #expect(maximum.value(at: begin.advanced(byMilliseconds: 1_000_000)) == 2)
    }

    @Test("a recent maximum is that of a list of all values, whatever the times")
    func recentAgainstList() {
        var maximum = RecentMaximum()
        var all: [(value: UInt64, slot: UInt64)] = []
        var (now, state) = (UInt64(0), UInt64(88_172_645_463_325_252))
        for _ in 0..<2_000 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            now += state % 30_000
            maximum.add(state % 1_000, at: MonotonicTime(milliseconds: now))
            all.append((state % 1_000, now / 10_000))
            let later = now + state % 90_000
            let recent = all.filter { $0.slot + 7 > later / 10_000 }.map(\.value).max() ?? 0
            #expect(maximum.value(at: MonotonicTime(milliseconds: later)) == recent)
        }
    }
}
