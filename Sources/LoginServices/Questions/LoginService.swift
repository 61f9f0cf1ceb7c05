import BrokerAPI
import Credentials
import Logging
import Logins
import OperatorLog
import Synchronization

/// Asks the company's service about logins, and remembers its answers.
///
/// At most `max_in_flight` requests are made at a time; further questions wait, bounded in number and
/// time. Equal questions join one request. Passwords are kept only while a question waits or is asked.
/// Any thread may ask; no call waits for the service.
package final class LoginService: Sendable {
    /// What came of a question.
    package enum Outcome: Sendable {
        case answered(ServiceAnswer)
        /// The service gives no answer, and lets in with an earlier one that is out of date.
        case outdated(ServiceLogin)
        /// A clause with the reason, such as "no answer within 2.0 seconds".
        case unavailable(reason: String)
    }

    /// Tells whether the client that a question is about has gone meanwhile.
    package typealias IsGone = @Sendable () -> Bool
    package typealias Completion = @Sendable (Outcome) -> Void

    /// The most connections at a time, whatever the settings say.
    package static let mostConnections = 1_024
    /// The most memory of remembered answers that let in: some 50,000 clients.
    package static let rememberedBytes = 16 << 20
    /// The same for refusals, apart, so that a flood of wrong passwords forgets no good one.
    package static let rememberedRefusalBytes = 1 << 20

    private let transport: any LoginTransport
    private let log: LoginServiceLog
    private let now: @Sendable () -> ContinuousClock.Instant
    /// UNIX seconds.
    private let wallClock: @Sendable () -> Int64
    /// Random bytes of this process, a part of each digest.
    private let key: [UInt8]
    private let state: Mutex<LoginQuestions>

    init(
        _ settings: LoginServiceSettings, transport: any LoginTransport, logger: Logger,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        wallClock: @escaping @Sendable () -> Int64
    ) {
        self.transport = transport
        self.now = now
        self.wallClock = wallClock
        log = LoginServiceLog(logger, url: settings.url)
        var random = SystemRandomNumberGenerator()
        key = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        state = Mutex(LoginQuestions(settings))
    }

    /// Connects to nothing yet.
    package convenience init(
        _ settings: LoginServiceSettings, _ files: LoginServiceFiles, logger: Logger,
        wallClock: @escaping @Sendable () -> Int64
    ) {
        let transport = HTTPLoginTransport(settings, files, connections: Self.mostConnections)
        self.init(settings, transport: transport, logger: logger, wallClock: wallClock)
    }

    /// Takes other settings, but for URL and files; answers that are remembered are forgotten when
    /// the settings differ.
    package func use(_ settings: LoginServiceSettings) {
        state.withLock { $0.use(settings) }
    }

    /// Takes other contents of the files for the next question.
    package func use(_ files: LoginServiceFiles) {
        (transport as? HTTPLoginTransport)?.use(files)
    }

    package func close() { transport.close() }

    package var figures: LoginServiceFigures { state.withLock { $0.figures } }

    // MARK: Questions

    /// The remembered answer to a question; takes microseconds.
    package func recall(_ question: LoginQuestion) -> ServiceAnswer? {
        let digest = question.digest(key)
        return state.withLock { $0.recall(digest, at: now(), wallClock: wallClock()) }
    }

    /// Asks; `then` is called once, at once or on another thread, at the latest after twice the
    /// timeout and the time of a request before it.
    ///
    /// - Parameters:
    ///   - question: the login, whose password is kept until the service is asked.
    ///   - origin: the key of the client's address; 0 when it has none of its own.
    ///   - isGone: asked before a question that has waited is asked.
    ///   - then: takes the outcome.
    package func ask(
        _ question: LoginQuestion, origin: UInt32, isGone: @escaping IsGone = { false },
        then: @escaping Completion
    ) {
        let digest = question.digest(key)
        let waiter = LoginQuestions.Waiter(isGone: isGone, then: then)
        carryOut(
            state.withLock {
                $0.ask(
                    question, digest, origin: origin, waiter, at: now(), wallClock: wallClock())
            })
    }

    private func carryOut(_ work: LoginQuestions.Work) {
        for (waiter, outcome) in work.finished { waiter.then(outcome) }
        if let change = work.change { log.say(change) }
        for request in work.requests { send(request) }
    }

    private func send(_ request: LoginQuestions.Request) {
        Task.detached { [self] in
            let reply = await transport.send(request.body, request.settings)
            let result: Result<ReceivedAnswer, LoginServiceFailure>
            switch reply {
            case .failure(let failure): result = .failure(failure)
            case .success(let document):
                do throws(MalformedAnswer) {
                    result = .success(try ReceivedAnswer(document))
                } catch {
                    result = .failure(
                        LoginServiceFailure(reason: error.complaint, isAnswer: true))
                }
            }
            carryOut(
                state.withLock {
                    $0.finish(
                        request.digest, request.epoch, result, at: now(), wallClock: wallClock())
                })
        }
    }
}

/// The log lines about the service: one when it is no longer asked, one when it is again.
struct LoginServiceLog: Sendable {
    private let logger: Logger
    private let url: String

    /// A change of the breaker.
    enum Change: Equatable {
        case opened(reason: String)
        case closed
    }

    init(_ logger: Logger, url: String) {
        self.logger = logger
        self.url = url
    }

    func say(_ change: Change) {
        switch change {
        case .opened(let reason):
            logger.warning(
                "The login service fails, it is asked only now and then",
                metadata: [LogKeys.loginServiceURL: "\(url)", LogKeys.reason: "\(reason)"])
        case .closed:
            logger.notice(
                "The login service answers again", metadata: [LogKeys.loginServiceURL: "\(url)"])
        }
    }
}
