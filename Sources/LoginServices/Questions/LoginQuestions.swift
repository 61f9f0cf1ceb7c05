import Authorization
import BrokerAPI
import Credentials
import Logins

/// Questions on their way and waiting, the breaker, and what is remembered. Performs no I/O and reads
/// no clock: what has to be done is returned as ``Work``.
struct LoginQuestions {
    typealias Time = ContinuousClock.Instant

    /// A login that waits for an outcome.
    struct Waiter: Sendable {
        let isGone: LoginService.IsGone
        let then: LoginService.Completion
    }

    /// A request to make, whose outcome comes to ``finish(_:_:_:at:wallClock:)``.
    struct Request: Sendable {
        let digest: SHA256Digest
        /// The breaker's, for the outcome.
        let epoch: UInt64
        let body: [UInt8]
        let settings: LoginServiceSettings
    }

    /// What a call leaves to do.
    struct Work {
        var requests: [Request] = []
        var finished: [(Waiter, LoginService.Outcome)] = []
        var change: LoginServiceLog.Change?
    }

    private struct Question {
        /// `nil` once it is asked: the password is no longer needed.
        var question: LoginQuestion?
        let since: Time
        var waiters: [Waiter]
    }

    private var settings: LoginServiceSettings
    private var breaker: CircuitBreaker
    private var allowed = RememberedAnswers(mostBytes: LoginService.rememberedBytes)
    private var refused = RememberedAnswers(mostBytes: LoginService.rememberedRefusalBytes)
    /// Allowances in use, so that clients with the same lists share one.
    private var allowances = SharedAllowances()
    private var questions: [SHA256Digest: Question] = [:]
    private var waiting: WaitingQuestions
    private var inFlight = 0
    /// Waiting logins of all questions, those in flight included.
    private var waiterCount = 0
    private var counts = LoginServiceCounts()
    private var lastFailure: String?

    init(_ settings: LoginServiceSettings) {
        self.settings = settings
        breaker = CircuitBreaker(
            mostFailures: settings.breakerFailures, pause: settings.breakerPause)
        waiting = WaitingQuestions(capacity: settings.maxWaiting)
    }

    mutating func use(_ settings: LoginServiceSettings) {
        guard settings != self.settings else { return }
        self.settings = settings
        breaker.mostFailures = settings.breakerFailures
        breaker.pause = settings.breakerPause
        waiting.capacity = settings.maxWaiting
        allowed = allowed.emptied()
        refused = refused.emptied()
    }

    var figures: LoginServiceFigures {
        LoginServiceFigures(
            logins: counts.byName, inFlight: inFlight, waiting: waiterCount,
            remembered: allowed.count + refused.count, isFailing: !breaker.isClosed,
            failure: lastFailure)
    }

    // MARK: Asking

    mutating func recall(
        _ digest: SHA256Digest, at now: Time, wallClock: Int64
    ) -> ServiceAnswer? {
        guard
            let answer = allowed.find(digest, at: now, wallClock: wallClock)
                ?? refused.find(digest, at: now, wallClock: wallClock)
        else { return nil }
        counts.remembered += 1
        return answer
    }

    mutating func ask(
        _ question: LoginQuestion, _ digest: SHA256Digest, origin: UInt32, _ waiter: Waiter,
        at now: Time, wallClock: Int64
    ) -> Work {
        var work = Work()
        // It may have been answered since the look at what is remembered.
        if let answer = recall(digest, at: now, wallClock: wallClock) {
            work.finished.append((waiter, .answered(answer)))
            return work
        }
        if questions[digest] != nil {
            guard waiterCount < settings.maxInFlight + settings.maxWaiting else {
                let outcome = unavailable("too many logins wait for it", digest, now, wallClock)
                finish(waiter, outcome, &work)
                return work
            }
            questions[digest]?.waiters.append(waiter)
            waiterCount += 1
            return work
        }
        if breaker.isClosed, inFlight >= settings.maxInFlight {
            wait(question, digest, origin, waiter, &work, now, wallClock)
        } else if let epoch = breaker.admit(at: now) {
            questions[digest] = Question(question: nil, since: now, waiters: [waiter])
            waiterCount += 1
            start(digest, question, epoch, &work)
        } else {
            let outcome = unavailable(
                "it is not asked for a while, because \(lastFailure ?? "it failed")", digest, now,
                wallClock)
            finish(waiter, outcome, &work)
        }
        return work
    }

    private mutating func wait(
        _ question: LoginQuestion, _ digest: SHA256Digest, _ origin: UInt32, _ waiter: Waiter,
        _ work: inout Work, _ now: Time, _ wallClock: Int64
    ) {
        questions[digest] = Question(question: question, since: now, waiters: [waiter])
        waiterCount += 1
        if let displaced = waiting.append(digest, origin: origin) {
            let outcome = unavailable("too many logins wait for it", displaced, now, wallClock)
            end(displaced, outcome, &work)
        }
    }

    private mutating func start(
        _ digest: SHA256Digest, _ question: LoginQuestion, _ epoch: UInt64, _ work: inout Work
    ) {
        inFlight += 1
        work.requests.append(
            Request(digest: digest, epoch: epoch, body: question.body, settings: settings))
    }

    // MARK: Outcomes

    /// Takes the outcome of a request, and starts others that wait.
    mutating func finish(
        _ digest: SHA256Digest, _ epoch: UInt64,
        _ result: Result<ReceivedAnswer, LoginServiceFailure>, at now: Time, wallClock: Int64
    ) -> Work {
        precondition(inFlight > 0, "an outcome of a request that was not made")
        inFlight -= 1
        var work = Work()
        switch result {
        case .success(let received):
            lastFailure = nil
            if breaker.noteAnswer(epoch) == .closed { work.change = .closed }
            let answer = sharing(received.answer.held(to: wallClock))
            remember(answer, for: received.remember, digest, now)
            end(digest, .answered(answer), &work)
        case .failure(let failure):
            lastFailure = failure.reason
            if failure.isAnswer {
                // What one question is answered says nothing of the others.
                if breaker.noteAnswer(epoch) == .closed { work.change = .closed }
            } else if breaker.noteFailure(epoch, at: now) == .opened {
                work.change = .opened(reason: failure.reason)
            }
            end(digest, unavailable(failure.reason, digest, now, wallClock), &work)
        }
        startWaiting(&work, now, wallClock)
        return work
    }

    /// The answer with the lists of an earlier one, if they are the same.
    private mutating func sharing(_ answer: ServiceAnswer) -> ServiceAnswer {
        guard case .allowed(var login) = answer, let allowance = login.allowance else {
            return answer
        }
        login.allowance = allowances.shared(allowance)
        return .allowed(login)
    }

    private mutating func startWaiting(_ work: inout Work, _ now: Time, _ wallClock: Int64) {
        while let digest = waiting.oldest, let entry = questions[digest],
            now >= entry.since.advanced(by: settings.timeout)
        {
            waiting.removeOldest()
            let reason = "no request was free within \(settings.timeout)"
            end(digest, unavailable(reason, digest, now, wallClock), &work)
        }
        while !breaker.isClosed || inFlight < settings.maxInFlight, let digest = waiting.next {
            // Nobody waits for the answer about a client that has gone.
            guard let entry = questions[digest], let question = entry.question,
                !entry.waiters.allSatisfy({ $0.isGone() })
            else {
                waiting.removeNext(isAsked: false)
                end(digest, .unavailable(reason: "the client has gone"), &work)
                continue
            }
            guard breaker.isClosed, let epoch = breaker.admit(at: now) else {
                waiting.removeNext(isAsked: false)
                end(
                    digest, unavailable(lastFailure ?? "it failed", digest, now, wallClock), &work)
                continue
            }
            waiting.removeNext(isAsked: true)
            questions[digest]?.question = nil
            start(digest, question, epoch, &work)
        }
    }

    private mutating func end(
        _ digest: SHA256Digest, _ outcome: LoginService.Outcome, _ work: inout Work
    ) {
        guard let entry = questions.removeValue(forKey: digest) else { return }
        waiterCount -= entry.waiters.count
        for waiter in entry.waiters { finish(waiter, outcome, &work) }
    }

    private mutating func finish(
        _ waiter: Waiter, _ outcome: LoginService.Outcome, _ work: inout Work
    ) {
        counts.note(outcome)
        work.finished.append((waiter, outcome))
    }

    /// What a login gets that cannot be asked for: an answer that is out of date, if it may be used.
    private mutating func unavailable(
        _ reason: String, _ digest: SHA256Digest, _ now: Time, _ wallClock: Int64
    ) -> LoginService.Outcome {
        if let grace = settings.outdated,
            case .allowed(let login)? = allowed.find(
                digest, at: now, grace: grace, wallClock: wallClock)
        {
            return .outdated(login)
        }
        return .unavailable(reason: reason)
    }

    private mutating func remember(
        _ answer: ServiceAnswer, for time: Duration?, _ digest: SHA256Digest, _ now: Time
    ) {
        switch answer {
        case .allowed:
            refused.remove(digest)
            let time = min(time ?? .zero, settings.remember)
            if time > .zero {
                allowed.insert(answer, digest, until: now.advanced(by: time))
            } else {
                allowed.remove(digest)
            }
        case .ended: allowed.remove(digest)
        case .denied, .ignored:
            // What it has let in before is no longer true.
            allowed.remove(digest)
            let time = min(time ?? .zero, settings.rememberDenied)
            if time > .zero { refused.insert(answer, digest, until: now.advanced(by: time)) }
        }
    }
}

/// Logins since the start, by what came of them.
struct LoginServiceCounts {
    var remembered: UInt64 = 0
    private var allowed: UInt64 = 0
    private var outdated: UInt64 = 0
    private var denied: UInt64 = 0
    private var ignored: UInt64 = 0
    private var unavailable: UInt64 = 0

    mutating func note(_ outcome: LoginService.Outcome) {
        switch outcome {
        case .answered(.allowed): allowed += 1
        case .answered(.denied), .answered(.ended): denied += 1
        case .answered(.ignored): ignored += 1
        case .outdated: outdated += 1
        case .unavailable: unavailable += 1
        }
    }

    var byName: [String: UInt64] {
        [
            "allowed": allowed, "denied": denied, "ignored": ignored, "unavailable": unavailable,
            "remembered": remembered, "outdated": outdated,
        ]
    }
}
