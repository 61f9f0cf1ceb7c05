@testable import BrokerCore
@testable import BrokerFeatures
import Structures
import Synchronization
import Testing
import Threads

@testable import BrokerRuntime

@Suite("Authenticator")
struct AuthenticatorTests {
    /// An authenticator whose full checks wait for permission, and whose answers the test reads.
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
                LoginCheck(
                    recall: { request in
                        switch request.userName.first {
                        case UInt8(ascii: "k"): .known(.rightPassword)
                        case UInt8(ascii: "t"): .quick
                        default: .slow
                        }
                    },
                    verify: { request in
                        guard request.userName.first != UInt8(ascii: "t") else {
                            return .admitted(Login(userName: request.userName))
                        }
                        begun.post(String(decoding: request.userName, as: UTF8.self))
                        _ = leave.takeAll()
                        return request.password == [1] ? .rightPassword : .wrongPassword
                    })
            ) { request, answer in
                let name = String(decoding: request.userName, as: UTF8.self)
                answers.post("\(name) \(Self.word(answer))")
            }
        }

        private static func word(_ answer: LoginAnswer) -> String {
            switch answer {
            case .admitted: "right"
            case .wrongPassword, .tokenRefused, .denied: "wrong"
            case .busy, .serviceUnavailable: "busy"
            }
        }

        func submit(_ name: String, isRight: Bool = true, origin: UInt32 = 1) -> Bool {
            authenticator.submit(
                AuthenticationRequest(
                    connection: Handle(index: 1, generation: 1), origin: origin,
                    userName: Array(name.utf8),
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

    @Test("cached passwords are answered before full checks, in any order of arrival")
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

    @Test("a full queue rejects unknown passwords and no cached ones")
    func full() throws {
        let bench = try Bench()
        defer { bench.end() }
        #expect(bench.submit("slow"))
        #expect(bench.awaitBegun() == ["slow"])
        for number in 0..<LoginQueue.mostPasswords + 3 { #expect(bench.submit("slow\(number)")) }
        #expect(bench.submit("known"))
        bench.leave.post(true)
        let first = LoginQueue.mostPasswords
        #expect(
            bench.take(5) == [
                "slow right", "slow\(first) busy", "slow\(first + 1) busy", "slow\(first + 2) busy",
                "known right",
            ])
    }

    @Test("a guessing address delays others by one check and takes none of their places")
    func turns() throws {
        let bench = try Bench()
        defer { bench.end() }
        #expect(bench.submit("guess"))
        #expect(bench.awaitBegun() == ["guess"])
        for number in 0..<LoginQueue.mostPasswords { #expect(bench.submit("guess\(number)")) }
        for name in ["anna1", "anna2"] { #expect(bench.submit(name, origin: 2)) }
        #expect(bench.submit("berta", origin: 3))
        bench.leave.post(true)
        let last = LoginQueue.mostPasswords - 1
        #expect(
            bench.take(4) == [
                "guess right", "guess\(last) busy", "guess\(last - 1) busy",
                "guess\(last - 2) busy",
            ])
        var begun: [String] = []
        for _ in 0..<5 {
            begun += bench.awaitBegun() ?? []
            bench.leave.post(true)
            #expect(bench.take(1).count == 1)
        }
        #expect(begun == ["guess0", "anna1", "berta", "guess1", "anna2"])
    }

    @Test("tokens wait for one password at most")
    func tokensBetweenPasswords() throws {
        let bench = try Bench()
        defer { bench.end() }
        #expect(bench.submit("slow1"))
        #expect(bench.awaitBegun() == ["slow1"])
        for name in ["slow2", "token1", "slow3", "token2"] { #expect(bench.submit(name)) }
        bench.leave.post(true)
        #expect(bench.take(3) == ["slow1 right", "token1 right", "token2 right"])
        #expect(bench.awaitBegun() == ["slow2"])
        #expect(bench.submit("token3"))
        bench.leave.post(true)
        #expect(bench.take(2) == ["slow2 right", "token3 right"])
    }

    @Test("a storm of tokens turns none away, and lets passwords have their turns")
    func stormOfTokens() throws {
        let bench = try Bench()
        defer { bench.end() }
        #expect(bench.submit("slow1"))
        #expect(bench.awaitBegun() == ["slow1"])
        #expect(bench.submit("slow2"))
        let count = LoginQueue.mostTokens + 1_000
        for number in 0..<count { #expect(bench.submit("token\(number)")) }
        bench.leave.post(true)
        // While the second password waits for its permission, the tokens behind it wait too.
        #expect(bench.awaitBegun() == ["slow2"])
        bench.leave.post(true)
        let answers = bench.take(count + 2)
        #expect(answers.count == count + 2)
        #expect(answers.allSatisfy { $0.hasSuffix(" right") })
        let second = answers.firstIndex(of: "slow2 right") ?? 0
        #expect((1_000...2_000).contains(second), "\(second) answers came before it")
    }

    @Test("a full queue takes places from the address that has most, and none of those without one")
    func displacement() {
        var queue = LoginQueue(capacity: LoginQueue.mostPasswords)
        /// Adds requests; returns the origins of those that had to leave.
        func add(_ origin: UInt32, times: Int = 1) -> Set<UInt32?> {
            Set(
                (0..<times).map { _ in
                    queue.append(
                        AuthenticationRequest(
                            connection: Handle(index: 1, generation: 1), origin: origin,
                            userName: [], password: []))?.origin
                })
        }
        #expect(add(0, times: 300) == [nil])
        #expect(add(1, times: 210) == [nil])
        #expect(add(2, times: 2) == [nil])
        #expect(add(1) == [1])
        #expect(add(2, times: 104) == [1])
        #expect(add(2) == [2], "106 each is fair")
        #expect(add(0) == [0], "it has more than either")
        var taken: [UInt32: Int] = [:]
        while let next = queue.removeFirst() { taken[next.origin, default: 0] += 1 }
        #expect(taken == [0: 300, 1: 106, 2: 106] && queue.count == 0)
    }

    @Test("arrivals during a check are bounded too, and rejected at once")
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
