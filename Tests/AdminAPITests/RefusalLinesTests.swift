import NIOCore
import Testing

@testable import AdminAPI

@Suite("Lines about refused requests")
struct RefusalLinesTests {
    private let start = ContinuousClock.now

    /// Outside of `#expect`, which cannot change what it looks at.
    private func note(
        _ lines: inout RefusalLines, _ subject: RefusalLines.Subject,
        at now: ContinuousClock.Instant
    ) -> RefusalLines.Line? {
        lines.note(subject, at: now)
    }

    private func subject(
        _ reason: AdminCounters.Refusal, _ address: String, token: String? = nil
    ) throws -> RefusalLines.Subject {
        let address = PeerAddress(try SocketAddress(ipAddress: address, port: 1234))
        return RefusalLines.Subject(reason: reason, address: address, token: token)
    }

    @Test("one a minute for each address, with how many were left out")
    func minute() throws {
        var lines = RefusalLines()
        let wrong = try subject(.unknownToken, "192.0.2.1")
        let other = try subject(.unknownToken, "192.0.2.2")
        #expect(note(&lines, wrong, at: start) == .init(suppressed: 0, suppressedOfAll: 0))
        for _ in 0..<7 { #expect(note(&lines, wrong, at: start + .seconds(58)) == nil) }
        #expect(
            note(&lines, other, at: start + .seconds(58))
                == .init(suppressed: 0, suppressedOfAll: 7))
        #expect(
            note(&lines, wrong, at: start + .seconds(60))
                == .init(suppressed: 7, suppressedOfAll: 0))
        #expect(note(&lines, wrong, at: start + .seconds(61)) == nil)
    }

    @Test("no reason and no token hides another of the same address")
    func reasons() throws {
        var lines = RefusalLines()
        let subjects = [
            try subject(.missingToken, "192.0.2.1"), try subject(.unknownToken, "192.0.2.1"),
            try subject(.expiredToken, "192.0.2.1", token: "old"),
            try subject(.missingScope, "192.0.2.1", token: "billing"),
            try subject(.tooManyFailures, "192.0.2.1"),
        ]
        for subject in subjects { #expect(note(&lines, subject, at: start) != nil) }
        let older = try subject(.expiredToken, "192.0.2.1", token: "older")
        #expect(note(&lines, older, at: start + .seconds(1)) != nil)
        for subject in subjects { #expect(note(&lines, subject, at: start + .seconds(2)) == nil) }
    }

    @Test("one a second over all addresses, and whoever came too soon has its line later")
    func second() throws {
        var lines = RefusalLines()
        let first = try subject(.unknownToken, "192.0.2.1")
        let second = try subject(.unknownToken, "192.0.2.2")
        #expect(note(&lines, first, at: start) != nil)
        for milliseconds in [0, 500, 999] {
            #expect(note(&lines, second, at: start + .milliseconds(milliseconds)) == nil)
        }
        #expect(note(&lines, first, at: start + .milliseconds(999)) == nil)
        #expect(
            note(&lines, second, at: start + .seconds(1))
                == .init(suppressed: 3, suppressedOfAll: 4))
    }

    @Test("the table is bounded; what was longest unseen is forgotten")
    func bound() throws {
        var lines = RefusalLines()
        let first = try subject(.unknownToken, "10.0.0.0")
        #expect(note(&lines, first, at: start) != nil)
        for number in 1...RefusalLines.maximumSubjects {
            let address = "10.1.\(number / 256).\(number % 256)"
            _ = note(
                &lines,
                try subject(.unknownToken, address), at: start + .milliseconds(number))
        }
        // Forgotten, so it begins anew.
        #expect(note(&lines, first, at: start + .seconds(3))?.suppressed == 0)
    }
}
