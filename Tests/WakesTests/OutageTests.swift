import Testing

@testable import Wakes

@Suite("What the log tells of a sender that does not send")
struct OutageTests {
    @Test("its end is told once, after a notification that was taken")
    func end() {
        var outage = Outage()
        var ends = [outage.endsWithSuccess()]
        var lines = [outage.admit("no trust", isPaused: true, atMilliseconds: 1_000)]
        // Pauses that follow each other are one outage.
        for second in 2..<100 {
            lines.append(
                outage.admit("no trust", isPaused: true, atMilliseconds: UInt64(second) * 1_000))
        }
        #expect(lines == [0] + Array(repeating: nil, count: 98))
        lines = [outage.admit("another reason", isPaused: true, atMilliseconds: 100_000)]
        lines.append(outage.admit("no trust", isPaused: true, atMilliseconds: 601_000))
        ends += [outage.endsWithSuccess(), outage.endsWithSuccess()]
        #expect(ends == [false, true, false])
        // A new outage is told at once.
        lines.append(outage.admit("no trust", isPaused: true, atMilliseconds: 602_000))
        #expect(lines == [0, 98, 0])
    }
}
