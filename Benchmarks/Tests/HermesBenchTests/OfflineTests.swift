import Glibc
import MQTTCodec
import Testing

@testable import hermes_bench

@Suite("Offline queues")
struct OfflineTests {
    private func plan(sessions: Int, publishers: Int, messages: UInt64) -> OfflinePlan {
        OfflinePlan(
            sessions: sessions, idleSessions: 0, messagesPerSession: messages,
            publishers: publishers, window: 1, qos: .atLeastOnce, payloadBytes: 64,
            returningAtOnce: 1)
    }

    @Test(
        "every message of every session is published once, in order, by one publisher",
        arguments: [(1, 1, 5), (7, 3, 4), (10, 10, 1), (12, 5, 3)])
    func destinations(sessions: Int, publishers: Int, messages: UInt64) {
        let plan = plan(sessions: sessions, publishers: publishers, messages: messages)
        var next = [UInt64](repeating: 0, count: sessions)
        var owner = [Int?](repeating: nil, count: sessions)
        for publisher in 0..<publishers {
            for position in 0..<plan.messages(of: publisher) {
                let (session, sequence) = plan.destination(
                    publisher: publisher, position: position)
                #expect(sequence == next[session])
                #expect(owner[session] ?? publisher == publisher)
                owner[session] = publisher
                next[session] += 1
            }
        }
        #expect(next.allSatisfy { $0 == messages })
        #expect(plan.messages == messages * UInt64(sessions))
    }

    @Test("an earlier run's names are found again by its number")
    func namesOfARun() {
        let first = RunNames()
        let again = RunNames(run: first.run)
        #expect(first.clientID("i", 99_999) == again.clientID("i", 99_999))
        #expect(first.topic(7) == again.topic(7))
    }

    @Test("names stay equally long up to the most that there may be")
    func mostNames() {
        let names = RunNames()
        let last = RunNames.most - 1
        #expect(names.topic(0).count == names.topic(last).count)
        #expect(names.clientID("i", 0).count == names.clientID("i", last).count)
    }

    @Test("late answers leave when they are due, in their order")
    func lateAcknowledgements() {
        var owed = LateAcknowledgements()
        let (identifier, next) = (PacketIdentifier(position: 0), PacketIdentifier(position: 1))
        owed.append(.init(due: 10, client: 4, type: .puback, identifier: identifier))
        owed.append(.init(due: 12, client: 5, type: .pubrec, identifier: next))
        let early = owed.removeNext(dueBy: 9)
        #expect(early?.client == nil)
        let due = owed.nextDue
        #expect(due == 10)
        let first = owed.removeNext(dueBy: 11)
        #expect(first?.client == 4 && first?.type == .puback && first?.identifier == identifier)
        let notYet = owed.removeNext(dueBy: 11)
        #expect(notYet?.client == nil)
        let second = owed.removeNext(dueBy: 12)
        #expect(second?.client == 5 && second?.type == .pubrec && second?.identifier == next)
        let isEmpty = owed.isEmpty
        #expect(isEmpty)
    }

    @Test("a data directory counts the blocks of its files, and of those one folder below")
    func dataDirectory() throws {
        var template = Array("/tmp/hermes-bench-test-XXXXXX".utf8CString)
        let made = try #require(mkdtemp(&template))
        let folder = String(cString: made)
        defer {
            for path in ["/below/second", "/below", "/first", ""] { _ = remove(folder + path) }
        }
        let directory = try DataDirectory(path: folder)
        #expect(try directory.usage().total == 0)
        try write(8_192, to: "\(folder)/first")
        #expect(mkdir("\(folder)/below", 0o700) == 0)
        try write(65_536, to: "\(folder)/below/second")
        let usage = try directory.usage()
        #expect(usage.total >= 8_192 + 65_536)
        #expect(usage.largestFile >= 65_536)
        #expect(usage.largestFile < usage.total)
    }

    @Test("a folder that is not there is an error that names it")
    func missingDirectory() {
        #expect {
            try DataDirectory(path: "/tmp/hermes-bench-no-such-folder")
        } throws: { error in
            "\(error)".contains("no-such-folder")
        }
    }

    private func write(_ count: Int, to path: String) throws {
        let file = try #require(fopen(path, "w"))
        for _ in 0..<count { _ = fputc(0x2E, file) }
        _ = fsync(fileno(file))
        _ = fclose(file)
    }
}
