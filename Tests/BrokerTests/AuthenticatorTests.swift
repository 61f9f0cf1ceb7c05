import Structures
import Synchronization
import Testing
import Threads

@testable import Broker

@Suite("Authenticator")
struct AuthenticatorTests {
    /// An authenticator whose full checks each wait for leave, and whose answers are read here.
    private struct Bench {
        let begun: WorkQueue<String>
        let leave: WorkQueue<Bool>
        let answers: WorkQueue<String>
        let authenticator: Authenticator

        init() throws {
            let begun = try WorkQueue<String>(name: "begun")
            let leave = try WorkQueue<Bool>(name: "leave")
            let answers = try WorkQueue<String>(name: "answers")
            self.begun = begun
            self.leave = leave
            self.answers = answers
            authenticator = try Authenticator(
                PasswordCheck(
                    recall: { name, _ in name.first == UInt8(ascii: "k") },
                    verify: { name, password in
                        begun.post(String(decoding: name, as: UTF8.self))
                        _ = leave.takeAll()
                        return password == [1]
                    })
            ) { request, outcome in
                answers.post("\(String(decoding: request.userName, as: UTF8.self)) \(outcome)")
            }
        }

        func submit(_ name: String, isRight: Bool = true) -> Bool {
            authenticator.submit(
                AuthenticationRequest(
                    connection: Handle(index: 1, generation: 1), userName: Array(name.utf8),
                    password: [isRight ? 1 : 0]))
        }

        /// Waits for so many answers.
        func take(_ count: Int) -> [String] {
            var taken: [String] = []
            while taken.count < count, let more = answers.takeAll(waitMilliseconds: 10_000),
                !more.isEmpty
            {
                taken += more
            }
            return taken
        }

        /// Waits until full checks have begun.
        func awaitBegun() -> [String]? { begun.takeAll(waitMilliseconds: 10_000) }

        func end() {
            authenticator.stop()
            leave.close()
        }
    }

    @Test("what is known is answered before what has to be checked, in whatever order it came")
    func knownFirst() throws {
        let bench = try Bench()
        defer { bench.end() }
        #expect(bench.submit("slow1"))
        #expect(bench.awaitBegun() == ["slow1"])
        for name in ["slow2", "known1", "slow3", "known2"] { #expect(bench.submit(name)) }
        #expect(bench.authenticator.waitingCount == 4)
        bench.leave.post(true)
        #expect(bench.take(3) == ["slow1 right", "known1 right", "known2 right"])
        #expect(bench.awaitBegun() == ["slow2"])
        #expect(bench.authenticator.waitingCount == 1)
        bench.leave.post(true)
        #expect(bench.take(1) == ["slow2 right"])
        #expect(bench.awaitBegun() == ["slow3"])
        bench.leave.post(true)
        #expect(bench.take(1) == ["slow3 right"])
        #expect(bench.authenticator.waitingCount == 0)
    }

    @Test("a wrong password is refused")
    func wrong() throws {
        let bench = try Bench()
        defer { bench.end() }
        #expect(bench.submit("slow", isRight: false))
        bench.leave.post(true)
        #expect(bench.take(1) == ["slow wrong"])
    }

    @Test("a full queue refuses what is not known, and nothing that is")
    func full() throws {
        let bench = try Bench()
        defer { bench.end() }
        #expect(bench.submit("slow"))
        #expect(bench.awaitBegun() == ["slow"])
        for number in 0..<Authenticator.capacity + 3 { #expect(bench.submit("slow\(number)")) }
        #expect(bench.submit("known"))
        bench.leave.post(true)
        let first = Authenticator.capacity
        #expect(
            bench.take(5) == [
                "slow right", "slow\(first) busy", "slow\(first + 1) busy", "slow\(first + 2) busy",
                "known right",
            ])
    }

    @Test("what arrives during one check is bounded too, and refused at once")
    func flood() throws {
        let bench = try Bench()
        defer { bench.end() }
        #expect(bench.submit("slow"))
        #expect(bench.awaitBegun() == ["slow"])
        for _ in 0..<Authenticator.arrivedCapacity { #expect(bench.submit("flood")) }
        #expect(!bench.submit("flood"))
        #expect(!bench.submit("known"))
    }
}
