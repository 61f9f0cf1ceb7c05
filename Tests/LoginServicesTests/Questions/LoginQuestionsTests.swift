import Credentials
import Synchronization
import Testing

@testable import LoginServices
@testable import Logins

@Suite("Questions to a login service")
struct LoginQuestionsTests {
    /// The epochs of requests that were made.
    private final class Epochs {
        var byDigest: [SHA256Digest: UInt64] = [:]

        func note(_ work: LoginQuestions.Work) -> LoginQuestions.Work {
            for request in work.requests { byDigest[request.digest] = request.epoch }
            return work
        }
    }

    private let epochs = Epochs()
    private let start = ContinuousClock.now
    private func after(_ seconds: Double) -> ContinuousClock.Instant {
        start.advanced(by: .seconds(seconds))
    }
    private static let wallClock: Int64 = 1_000

    private func settings(
        inFlight: Int = 2, waiting: Int = 2, outdated: Duration? = nil, failures: Int = 100
    ) -> LoginServiceSettings {
        var settings = LoginServiceSettings(url: "http://127.0.0.1:1/")
        settings.maxInFlight = inFlight
        settings.maxWaiting = waiting
        settings.outdated = outdated
        settings.breakerFailures = failures
        return settings
    }

    private func digest(_ name: String) -> SHA256Digest { SHA256Digest(of: name.utf8) }

    private func ask(
        _ questions: inout LoginQuestions, _ name: String, origin: UInt32 = 1,
        isGone: @escaping LoginService.IsGone = { false }, at time: Double = 0
    ) -> LoginQuestions.Work {
        epochs.note(
            questions.ask(
                LoginQuestion(
                    userName: Array(name.utf8), clientID: [], password: [], address: ""),
                digest(name), origin: origin,
                LoginQuestions.Waiter(isGone: isGone, then: { _ in }), at: after(time),
                wallClock: Self.wallClock))
    }

    private func finish(
        _ questions: inout LoginQuestions, _ name: String, _ document: String?,
        isAnswer: Bool = false, at time: Double = 0
    ) -> LoginQuestions.Work {
        let result: Result<ReceivedAnswer, LoginServiceFailure>
        if let document, let answer = try? ReceivedAnswer(Array(document.utf8)) {
            result = .success(answer)
        } else {
            result = .failure(LoginServiceFailure(reason: "no answer", isAnswer: isAnswer))
        }
        return epochs.note(
            questions.finish(
                digest(name), epochs.byDigest[digest(name)] ?? .max, result, at: after(time),
                wallClock: Self.wallClock))
    }

    private func words(_ work: LoginQuestions.Work) -> [String] {
        work.finished.map { _, outcome in
            switch outcome {
            case .answered(.allowed): "allowed"
            case .answered(.denied): "denied"
            case .answered(.ended): "ended"
            case .answered(.ignored): "ignored"
            case .outdated: "outdated"
            case .unavailable(let reason): reason
            }
        }
    }

    /// `#expect` takes no call that changes what it is called on.
    private func expect(_ isTrue: Bool, _ location: SourceLocation = #_sourceLocation) {
        #expect(isTrue, sourceLocation: location)
    }

    private let allow = #"{"result":"allow","remember_s":60}"#

    @Test("so many requests at a time, so many wait, and a further one is told to come again")
    func bounds() {
        var questions = LoginQuestions(settings())
        expect(ask(&questions, "a").requests.count == 1)
        expect(ask(&questions, "b").requests.count == 1)
        expect(ask(&questions, "c").requests.isEmpty)
        expect(ask(&questions, "d").requests.isEmpty)
        let fifth = ask(&questions, "e")
        #expect(words(fifth) == ["too many logins wait for it"])
        let next = finish(&questions, "a", allow)
        #expect(words(next) == ["allowed"])
        #expect(next.requests.map(\.digest) == [digest("c")])
        #expect(questions.figures.waiting == 3)
        #expect(questions.figures.inFlight == 2)
    }

    @Test("an address that fills the queue loses its place to another one")
    func fairness() {
        var questions = LoginQuestions(settings(inFlight: 1, waiting: 3))
        for name in ["a", "b", "c", "d"] { _ = ask(&questions, name, origin: 1) }
        let other = ask(&questions, "other", origin: 2)
        #expect(words(other) == ["too many logins wait for it"])
        #expect(questions.figures.waiting == 4)
        let first = finish(&questions, "a", allow)
        #expect(first.requests.map(\.digest) == [digest("b")])
        expect(finish(&questions, "b", allow).requests.map(\.digest) == [digest("other")])
    }

    @Test("equal questions join one request")
    func joined() {
        var questions = LoginQuestions(settings())
        expect(ask(&questions, "a").requests.count == 1)
        expect(ask(&questions, "a").requests.isEmpty)
        expect(ask(&questions, "a").requests.isEmpty)
        expect(ask(&questions, "a").requests.isEmpty)
        // Joining is bounded too.
        expect(words(ask(&questions, "a")) == ["too many logins wait for it"])
        expect(words(finish(&questions, "a", allow)) == Array(repeating: "allowed", count: 4))
        #expect(questions.figures.waiting == 0)
    }

    @Test("a question that waited for longer than the timeout is not asked")
    func overdue() {
        var questions = LoginQuestions(settings(inFlight: 1))
        _ = ask(&questions, "a")
        _ = ask(&questions, "b")
        _ = ask(&questions, "c", at: 1)
        let work = finish(&questions, "a", nil, at: 2)
        #expect(words(work) == ["no answer", "no request was free within 2.0 seconds"])
        #expect(work.requests.map(\.digest) == [digest("c")])
    }

    @Test("what waited too long ends at once, whoever's turn it is")
    func overdueOfAll() {
        var questions = LoginQuestions(settings(inFlight: 1, waiting: 9))
        _ = ask(&questions, "x")
        for name in ["a1", "a2", "a3"] { _ = ask(&questions, name, origin: 1) }
        _ = ask(&questions, "b", origin: 2)
        _ = ask(&questions, "a4", origin: 1, at: 1)
        let work = finish(&questions, "x", allow, at: 2)
        let late = "no request was free within 2.0 seconds"
        #expect(words(work) == ["allowed"] + Array(repeating: late, count: 4))
        #expect(work.requests.map(\.digest) == [digest("a4")])
        #expect(questions.figures.waiting == 1)
    }

    @Test("clients that have gone cost their address no turn")
    func goneOfOneAddress() {
        var questions = LoginQuestions(settings(inFlight: 1, waiting: 9))
        _ = ask(&questions, "x")
        _ = ask(&questions, "a1", origin: 1, isGone: { true })
        _ = ask(&questions, "a2", origin: 1)
        _ = ask(&questions, "a3", origin: 1)
        _ = ask(&questions, "b", origin: 2)
        expect(finish(&questions, "x", allow).requests.map(\.digest) == [digest("a2")])
        expect(finish(&questions, "a2", allow).requests.map(\.digest) == [digest("b")])
        expect(finish(&questions, "b", allow).requests.map(\.digest) == [digest("a3")])
        expect(finish(&questions, "a3", allow).requests.isEmpty)
        #expect(questions.figures.waiting == 0)
    }

    @Test("an answer of no use to one login does not keep others from being asked about")
    func uselessAnswers() {
        var questions = LoginQuestions(settings(failures: 2))
        for name in ["a", "b", "c"] {
            expect(ask(&questions, name).requests.count == 1)
            expect(words(finish(&questions, name, nil, isAnswer: true)) == ["no answer"])
        }
        #expect(!questions.figures.isFailing)
        for name in ["d", "e"] {
            _ = ask(&questions, name)
            _ = finish(&questions, name, nil)
        }
        #expect(questions.figures.isFailing)
    }

    @Test("nobody is asked about a client that has gone")
    func gone() {
        var questions = LoginQuestions(settings(inFlight: 1))
        _ = ask(&questions, "a")
        _ = ask(&questions, "b", isGone: { true })
        _ = ask(&questions, "c")
        expect(finish(&questions, "a", allow).requests.map(\.digest) == [digest("c")])
        #expect(questions.figures.waiting == 1)
    }

    // MARK: Memory

    @Test("an answer is remembered for as long as the service and the settings allow")
    func remembered() {
        var questions = LoginQuestions(settings())
        _ = ask(&questions, "a")
        _ = finish(&questions, "a", #"{"result":"allow","remember_s":1000000}"#)
        expect(words(ask(&questions, "a", at: 299)) == ["allowed"])
        expect(ask(&questions, "a", at: 300).requests.count == 1)
        // A refusal ends what was remembered, and is remembered for a shorter time.
        _ = finish(&questions, "a", #"{"result":"deny","remember_s":1000000}"#, at: 300)
        expect(words(ask(&questions, "a", at: 309)) == ["denied"])
        expect(ask(&questions, "a", at: 310).requests.count == 1)
    }

    @Test("logins with the same lists share one instance of them")
    func sharing() {
        var questions = LoginQuestions(settings())
        func allowance(_ name: String, _ document: String) -> ObjectIdentifier? {
            _ = ask(&questions, name)
            guard
                case .answered(.allowed(let login))? = finish(&questions, name, document)
                    .finished.first?.1
            else { return nil }
            return login.allowance.map { ObjectIdentifier($0) }
        }
        let lists = #"{"result":"allow","publish":["up/%u"],"subscribe":["a","b"]}"#
        let first = allowance("a", lists)
        #expect(first != nil)
        #expect(allowance("b", lists) == first)
        // The same texts in another place, and with another meaning.
        let other = #"{"result":"allow","publish":["up/%u","a"],"subscribe":["b"]}"#
        #expect(allowance("c", other) != first)
        let superuser =
            #"{"result":"allow","superuser":true,"publish":["up/%u"],"subscribe":["a","b"]}"#
        #expect(allowance("d", superuser) != first)
        #expect(allowance("e", lists) == first)
    }

    @Test("an answer without a time is not remembered, and ends an earlier one")
    func notRemembered() {
        var questions = LoginQuestions(settings())
        _ = ask(&questions, "a")
        _ = finish(&questions, "a", #"{"result":"allow"}"#)
        expect(ask(&questions, "a").requests.count == 1)
    }

    @Test("a login that has ended lets nobody in, and is not remembered beyond its end")
    func ended() {
        var questions = LoginQuestions(settings())
        _ = ask(&questions, "a")
        let work = finish(&questions, "a", #"{"result":"allow","expires_at":1000}"#)
        #expect(words(work) == ["ended"])
        var answers = RememberedAnswers(mostBytes: 10_000)
        answers.insert(
            .allowed(ServiceLogin(expiresAt: 2_000, narrows: false)), digest("b"), until: after(9))
        let before = answers.find(digest("b"), at: start, wallClock: 1_999)
        let after = answers.find(digest("b"), at: start, wallClock: 2_000)
        #expect(before != nil && after == nil)
    }

    @Test("what is remembered has a bound")
    func memoryBound() {
        var answers = RememberedAnswers(mostBytes: 100 * 256)
        for number in 0..<1_000 {
            answers.insert(.ignored, digest("\(number)"), until: after(10))
            #expect(answers.count <= 100)
        }
        let latest = answers.find(digest("999"), at: start, wallClock: 0)
        let first = answers.find(digest("1"), at: start, wallClock: 0)
        #expect(latest != nil && first == nil)
    }

    @Test("other settings forget what is remembered")
    func forgotten() {
        var questions = LoginQuestions(settings())
        _ = ask(&questions, "a")
        _ = finish(&questions, "a", allow)
        questions.use(settings())
        expect(words(ask(&questions, "a")) == ["allowed"])
        questions.use(settings(inFlight: 3))
        expect(ask(&questions, "a").requests.count == 1)
    }

    // MARK: Failures

    @Test("while the service fails nobody waits, and one probe at a time finds out")
    func failing() {
        var questions = LoginQuestions(settings(failures: 2))
        for name in ["a", "b", "c", "d"] { _ = ask(&questions, name) }
        expect(finish(&questions, "a", nil).change == nil)
        let opened = finish(&questions, "b", nil)
        #expect(opened.change == .opened(reason: "no answer"))
        // "c" took the place of "a" and is on its way; "d" does not wait on.
        #expect(words(opened) == ["no answer", "no answer"])
        #expect(questions.figures.isFailing)
        expect(
            words(ask(&questions, "e", at: 1))
                == ["it is not asked for a while, because no answer"])
        _ = finish(&questions, "c", nil, at: 1)
        expect(ask(&questions, "probe", at: 6).requests.count == 1)
        expect(ask(&questions, "f", at: 6).requests.isEmpty)
        expect(finish(&questions, "probe", allow, at: 7).change == .closed)
        expect(ask(&questions, "f", at: 7).requests.count == 1)
        #expect(!questions.figures.isFailing)
    }

    @Test("an answer that is out of date lets in for a while if it may, and a refusal never")
    func outdated() {
        var questions = LoginQuestions(settings(outdated: .seconds(100), failures: 1))
        _ = ask(&questions, "a")
        _ = finish(&questions, "a", allow)
        _ = ask(&questions, "b")
        _ = finish(&questions, "b", #"{"result":"deny","remember_s":5}"#)
        // It is asked first.
        expect(ask(&questions, "a", at: 61).requests.count == 1)
        expect(words(finish(&questions, "a", nil, at: 62)) == ["outdated"])
        expect(words(ask(&questions, "a", at: 63)) == ["outdated"])
        expect(words(ask(&questions, "b", at: 63)).first?.hasPrefix("it is not asked") == true)
        expect(ask(&questions, "a", at: 161).requests.count == 1)
        expect(words(finish(&questions, "a", nil, at: 161)) == ["no answer"])
    }
}
