import BrokerAPI

/// Decides from the answers of a push service how fast notifications of one app go to it, and what is
/// wrong there. Times are milliseconds of the monotonic clock.
///
/// An answer that makes key, certificate or app suspect counts only while nothing else passes. Then
/// one notification at a time is tried, after growing pauses, each of another device if there is one;
/// the first that passes ends that. Device tokens that the service does not know slow nothing, until nearly
/// all are such: then a trickle goes on, so that a wrong list of devices is not set aside within a
/// second.
struct AppHealth {
    /// What the service refuses.
    enum Cause: Equatable, Sendable {
        case credentials, unfitKey, expiredToken, tooManyTokens, topic
        /// Nothing is refused, but the service asks for a pause.
        case busy
    }

    /// What is to be done with a notification that the service refused for a ``Cause``.
    enum Verdict: Equatable {
        /// Other notifications pass: this one alone is refused.
        case thisOne
        /// Nothing passes, and no other device was refused: it is tried again later.
        case later
        /// Nothing passes: it goes back to the broker, as if it had not been sent.
        case giveBack
    }

    /// A success is evidence for the credentials for so long.
    static let evidence: UInt64 = 60_000
    /// Refusals one after the other that outweigh a success just before.
    private static let mostRefusals = 3
    private static let firstPause: UInt64 = 1_000
    private static let longestPause: UInt64 = 60_000
    /// Pauses after too many new provider tokens.
    private static let firstTokenPause: UInt64 = 10_000
    private static let longestTokenPause: UInt64 = 600_000
    /// Pauses that a service asks for without saying how long ("Scale FCM messages", Firebase
    /// documentation), and the longest of those that it says.
    private static let firstBusyPause: UInt64 = 60_000
    private static let longestBusyPause: UInt64 = 3_600_000
    /// The longest time until the broker tries a single notification again, and a little more: a
    /// suspicion that nothing has confirmed for so long is over.
    private static let memory: UInt64 = 660_000

    private static let window: UInt64 = 60_000
    /// Unknown device tokens in a window from which on their share raises an alarm.
    private static let leastUnknown = 100
    private static let unknownShare = 0.05
    private static let alarmTime: UInt64 = 600_000
    /// A trickle goes out while at least so many of the last 64 answers are about unknown tokens.
    private static let trickleShare = 61
    private static let trickleInterval: UInt64 = 100

    private struct Suspicion {
        var cause: Cause
        var word: String
        var refusals = 1
        var level: UInt64 = 0
        /// The device that was refused first.
        let first: UInt64
        var hasOthers = false
        var nextTry: UInt64
        var last: UInt64
        /// The pause in milliseconds that the service asked for last; 0 for none.
        var asked: UInt64 = 0
    }

    private var suspicion: Suspicion?
    private var lastPass: UInt64?
    /// Refusals since the last success.
    private var refusals = 0
    /// The last answers, the newest in the lowest bit: 1 for an unknown token.
    private var recent: UInt64 = 0
    private var recentCount = 0
    private var nextTrickle: UInt64 = 0
    private var windowStart: UInt64 = 0
    private var answers = 0
    private var unknown = 0
    private var alarm: (words: String, until: UInt64)?

    // MARK: Sending

    /// True when a further notification may be sent while `open` of them have no answer.
    func maySend(open: Int, at now: UInt64) -> Bool {
        if let suspicion { return open == 0 && now >= suspicion.nextTry }
        return !isTrickling || (open < 2 && now >= nextTrickle)
    }

    mutating func sent(at now: UInt64) {
        if isTrickling { nextTrickle = now + Self.trickleInterval }
    }

    /// The most notifications that make sense to be held; `nil` for any number.
    var most: Int? {
        if let suspicion { return suspicion.hasOthers ? 1 : nil }
        return isTrickling ? 4 : nil
    }

    private var isTrickling: Bool {
        recentCount >= 64 && recent.nonzeroBitCount >= Self.trickleShare
    }

    /// True while nothing but a try now and then goes out.
    func isPaused(at now: UInt64) -> Bool {
        guard let suspicion, now < max(suspicion.last, suspicion.nextTry) + Self.memory else {
            return false
        }
        // One refusal may be about its device alone, but not one for too many tokens.
        return suspicion.refusals > 1 || suspicion.cause == .tooManyTokens
            || suspicion.cause == .busy
    }

    /// True when a notification has passed lately.
    func passes(at now: UInt64) -> Bool {
        suspicion == nil && (lastPass.map { now < $0 + Self.evidence } ?? false)
    }

    // MARK: Answers

    /// Notes an answer that shows that credentials and app are good.
    mutating func passed(at now: UInt64) {
        suspicion = nil
        refusals = 0
        lastPass = now
        count(isUnknown: false, at: now)
    }

    /// Notes a device that the service does not know.
    mutating func unknownDevice(at now: UInt64) { count(isUnknown: true, at: now) }

    private mutating func count(isUnknown: Bool, at now: UInt64) {
        recent = recent << 1 | (isUnknown ? 1 : 0)
        recentCount = min(64, recentCount + 1)
        if now >= windowStart + Self.window { (windowStart, answers, unknown) = (now, 0, 0) }
        answers += 1
        if isUnknown { unknown += 1 }
        guard unknown >= Self.leastUnknown,
            Double(unknown) > Double(answers) * Self.unknownShare
        else { return }
        alarm = (
            "does not know \(unknown) of \(answers) device tokens", now + Self.alarmTime
        )
    }

    /// Notes a notification that the service refused for a reason that may be about all. `asked` is
    /// the pause in milliseconds that it asks for; 0 when it says none.
    mutating func refused(
        _ cause: Cause, _ word: String, device: UInt64, asked: UInt64 = 0, at now: UInt64
    ) -> Verdict {
        refusals += 1
        guard var suspicion else {
            if passes(at: now), refusals < Self.mostRefusals { return .thisOne }
            var suspicion = Suspicion(
                cause: cause, word: word, first: device, nextTry: now, last: now)
            suspicion.asked = asked
            suspicion.nextTry = now + pause(suspicion)
            self.suspicion = suspicion
            return .later
        }
        suspicion.refusals += 1
        suspicion.last = now
        (suspicion.cause, suspicion.word, suspicion.asked) = (cause, word, asked)
        if device != suspicion.first { suspicion.hasOthers = true }
        // What was under way when the first was refused proves nothing more. A single device
        // that is refused again has its own growing pause, and delays no other.
        if now >= suspicion.nextTry {
            if device != suspicion.first || cause == .tooManyTokens || cause == .busy {
                suspicion.level += 1
            }
            suspicion.nextTry = now + pause(suspicion)
        }
        self.suspicion = suspicion
        return suspicion.hasOthers ? .giveBack : .later
    }

    private func pause(_ suspicion: Suspicion) -> UInt64 {
        let (first, longest) =
            switch suspicion.cause {
            case .tooManyTokens: (Self.firstTokenPause, Self.longestTokenPause)
            case .busy where suspicion.asked > 0:
                (suspicion.asked, max(suspicion.asked, Self.longestTokenPause))
            case .busy: (Self.firstBusyPause, Self.longestTokenPause)
            case .credentials, .unfitKey, .expiredToken, .topic:
                (Self.firstPause, Self.longestPause)
            }
        return min(first << min(suspicion.level, 10), longest, Self.longestBusyPause)
    }

    /// New credentials have been read: they are tried at once.
    mutating func forgive() {
        suspicion = nil
        refusals = 0
        lastPass = nil
    }

    // MARK: What is wrong

    /// A trouble in words, and what an operator can do; `nil` without one.
    func trouble(
        _ brand: ServiceBrand, bundle: String, environment: String, at now: UInt64
    ) -> PushFigures.Trouble? {
        if let suspicion, isPaused(at: now) {
            return PushFigures.Trouble(
                environment: environment, bundle: bundle, isPaused: true,
                reason: brand.reason(suspicion.cause, suspicion.word)
                    + " for \(bundle) in \(environment)",
                hint: brand.hint(suspicion.cause))
        }
        guard let alarm, now < alarm.until else { return nil }
        return PushFigures.Trouble(
            environment: environment, bundle: bundle, isPaused: false,
            reason: "\(brand.name) \(alarm.words) for \(bundle) in \(environment)"
                + (isTrickling ? ", and a few are tried each second" : ""),
            hint: brand.unknownHint)
    }
}
