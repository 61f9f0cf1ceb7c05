import Structures
import Testing

@testable import BrokerRuntime

@Suite("What has arrived for the loop")
struct ArrivalsTests {
    private func answer(_ index: UInt32) -> ShardMessage {
        .authenticated(Handle(index: index, generation: 1), .wrongPassword, mayBeGuess: true)
    }

    private func index(_ message: ShardMessage?) -> UInt32? {
        if case .authenticated(let handle, _, _) = message { handle.index } else { nil }
    }

    @Test("events are handed out once, in order")
    func events() {
        var arrivals = Arrivals()
        #expect(arrivals.areEventsHandled)
        arrivals.setEvents(2)
        let first = arrivals.nextEvent()
        #expect(first == 0)
        #expect(!arrivals.areEventsHandled)
        let rest = [arrivals.nextEvent(), arrivals.nextEvent()]
        #expect(rest == [1, nil])
        #expect(arrivals.areEventsHandled)
    }

    @Test("messages are handed out once, in order, and those that are left can be taken")
    func mail() {
        var arrivals = Arrivals()
        arrivals.hasUntakenMail = true
        arrivals.setMail((0..<5).map(answer))
        #expect(!arrivals.hasUntakenMail)
        let first = [arrivals.nextMail(), arrivals.nextMail()].map(index)
        #expect(first == [0, 1])
        #expect(arrivals.hasMail)
        let left = arrivals.takeMail().map(index)
        #expect(left == [2, 3, 4])
        #expect(!arrivals.hasMail)
        arrivals.setMail([answer(7)])
        let next = [arrivals.nextMail(), arrivals.nextMail()].map(index)
        #expect(next == [7, nil])
        #expect(!arrivals.hasMail)
    }
}
