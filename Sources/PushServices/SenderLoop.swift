import BrokerAPI
import CLinux
import Glibc

/// The loop of the sender's thread: brings the parts together, and knows sockets and the clock.
///
/// ``NotificationQueue`` holds the notifications and judges their answers, ``ServiceConnections``
/// the connections to each service with each key, and the ``PushProvider`` knows what is of one push
/// service alone: its requests, its answers and its tokens.
final class SenderLoop {
    private static let tick: UInt64 = 100
    private static let beatInterval: UInt64 = 5_000
    /// Words of answers that are counted one by one.
    private static let mostWords = 64
    /// A connection that answers nothing for so long is quiet.
    private static let silence: UInt64 = 30_000
    /// A service without an answer for so long is told to be slow.
    private static let patience: UInt64 = 5_000

    /// Names a request of the provider's own; no notification has it.
    private static let errandTag = UInt32.max

    private let provider: any PushProvider
    private let inbox: SenderInbox
    private let shared: SenderShared
    private let report: @Sendable ([WakeAnswer]) -> Void
    private let beat: @Sendable () -> Void

    private let routes: ServiceRoutes
    /// Requests of the provider's own without an answer, by service.
    private var errands: [Int: (connection: Int, since: UInt64)] = [:]
    private var queue: NotificationQueue
    private let services: [ServiceConnections]
    private var fields = RequestFields()
    private var figures = PushFigures()
    private var limits: [WakeDemand.Limit] = []
    /// Why nothing can be sent to each service; `nil` while nothing is known.
    private var obstacles: [String?]
    private var now: UInt64 = 0
    private var nextTick: UInt64 = 0
    private var nextBeat: UInt64 = 0
    private var isStopping = false

    init(
        _ provider: any PushProvider, _ inbox: SenderInbox, _ shared: SenderShared,
        _ report: @escaping @Sendable ([WakeAnswer]) -> Void,
        _ beat: @escaping @Sendable () -> Void
    ) {
        self.provider = provider
        self.inbox = inbox
        self.shared = shared
        self.report = report
        self.beat = beat
        let routes = provider.routes
        self.routes = routes
        queue = NotificationQueue(routes, provider.brand)
        services = (0..<routes.serviceCount).map { service in
            ServiceConnections(
                service, provider.endpoint(of: service), mostConnections: provider.mostConnections,
                inbox, of: routes.serviceCount
            ) { status, body, retryAfter in
                provider.answer(status, body, retryAfter: retryAfter)
            }
        }
        obstacles = services.map { _ in nil }
    }

    func run() {
        while !isStopping {
            wait()
            now = hermes_monotonic_ms()
            takeInbox()
            let isTick = now >= nextTick
            if isTick { checkTimes() }
            for service in services {
                takeEvents(service)
                send(service)
                runErrand(on: service)
                service.connect(
                    provider.tls(of: service.service),
                    waiting: queue.maySend(to: service.service, at: now)
                        || owesErrand(on: service.service), now: now)
                service.flush(now: now)
                takeEvents(service)
            }
            let found = services.map { obstacle(of: $0) }
            if isTick || queue.isStirred || found != obstacles {
                obstacles = found
                queue.isStirred = false
                queue.giveBackSurplus(unreachable: obstacles)
                publish()
            }
            deliverAnswers()
        }
        queue.giveBackAll("the broker stops")
        for service in services { service.sayGoodbye() }
        deliverAnswers()
    }

    /// Sleeps until a socket or the inbox has something, or the next tick.
    private func wait() {
        var entries = [pollfd(fd: inbox.eventDescriptor, events: Int16(POLLIN), revents: 0)]
        let waits = services.flatMap(\.waits)
        entries += waits.map(\.entry)
        let count = poll(
            &entries, nfds_t(entries.count), queue.count == 0 ? 1_000 : CInt(Self.tick))
        guard count > 0 else { return }
        now = hermes_monotonic_ms()
        for (wait, entry) in zip(waits, entries.dropFirst()) where entry.revents != 0 {
            services[wait.number % services.count].advance(wait.number, now: now)
        }
    }

    private func takeInbox() {
        let content = inbox.take()
        isStopping = content.isStopping
        if let credentials = content.credentials {
            provider.use(credentials)
            queue.forgive()
            queue.isStirred = true
        }
        for (service, found) in content.addresses { services[service].resolved(found, now: now) }
        for batch in content.batches {
            for request in batch() { queue.enqueue(request, at: now) }
        }
        // After the batches: a hand-out may be withdrawn as soon as it is handed over.
        queue.withdraw(content.withdrawn)
    }

    private func deliverAnswers() {
        let answers = queue.takeAnswers()
        if !answers.isEmpty { report(answers) }
    }

    // MARK: Sending

    /// Sends what waits for a service, as far as it has streams.
    private func send(_ service: ServiceConnections) {
        guard queue.waits(for: service.service) else { return }
        let (token, issuedAt): (String?, Int64) =
            switch provider.token(for: service.service, at: now) {
            case .none: (nil, 0)
            case .text(let text, let time): (text, time)
            case .missing: (nil, -1)
            }
        guard issuedAt >= 0 else { return }
        for (number, room) in service.rooms() {
            var left = room
            while left > 0, let tag = queue.next(for: service.service, at: now) {
                guard let request = queue.request(tag) else { continue }
                left -= 1
                fields.removeAll()
                provider.fill(&fields, request, to: service.service, token)
                guard
                    service.submit(
                        fields, payload: request.payload, tag: tag, on: number, now: now)
                else {
                    queue.unsent(tag)
                    break
                }
                queue.sent(tag, on: number, tokenIssuedAt: issuedAt, at: now)
            }
        }
    }

    // MARK: Errands

    private func owesErrand(on service: Int) -> Bool {
        let first = 2 * ServiceRoutes.identity(service)
        let isWanted = queue.heldCounts[first] + queue.heldCounts[first + 1] > 0
        return errands[service] == nil
            && provider.owesErrand(on: service, isWanted: isWanted, at: now)
    }

    /// Sends a request of the provider's own, such as one for a token.
    private func runErrand(on service: ServiceConnections) {
        guard owesErrand(on: service.service), let room = service.rooms().first else { return }
        fields.removeAll()
        let body = provider.fillErrand(&fields, on: service.service, at: now)
        guard let body,
            service.submit(
                fields, payload: body, tag: Self.errandTag, on: room.number, now: now)
        else { return }
        errands[service.service] = (room.number, now)
    }

    /// Why nothing can be sent to a service.
    private func obstacle(of service: ServiceConnections) -> String? {
        if let own = provider.obstacle(of: service.service) ?? service.failure { return own }
        return provider.missingToken(of: service.service).flatMap { source in
            services[source].failure.map { "\(services[source].address.host): \($0)" }
        }
    }

    // MARK: What comes back

    private func takeEvents(_ service: ServiceConnections) {
        for event in service.takeEvents() {
            switch event {
            case .answered(Self.errandTag, let answer, let body, let retryAfter):
                errands[service.service] = nil
                provider.errandAnswered(
                    on: service.service, answer.status, body, retryAfter: retryAfter, at: now)
            case .answered(let tag, let answer, _, _): take(answer, tag, service)
            case .streamEnded(Self.errandTag, _): endErrand(on: service.service)
            case .streamEnded(let tag, let isUnprocessed):
                queue.streamEnded(tag, isUnprocessed: isUnprocessed, at: now)
            case .lost(let number, let wasUseful, let reason):
                if errands[service.service]?.connection == number {
                    endErrand(on: service.service)
                }
                queue.connectionLost(number, wasUseful: wasUseful, reason)
            }
        }
    }

    private func endErrand(on service: Int) {
        errands[service] = nil
        provider.errandLost(on: service, at: now)
    }

    private func take(_ answer: ProviderAnswer, _ tag: UInt32, _ service: ServiceConnections) {
        count(answer)
        guard let sending = queue.sending(of: tag) else { return }
        service.answered(after: now - min(now, sending.since), now: now)
        let isMended = provider.isMended(
            answer, sending.tokenIssuedAt, on: service.service, at: now)
        guard !isMended else {
            queue.sendAgain(tag, answer.word)
            return
        }
        queue.answered(tag, answer, at: now)
    }

    private func count(_ answer: ProviderAnswer) {
        let word = answer.status == 200 ? "Success" : answer.word
        let isKnown = figures.answers[word] != nil || figures.answers.count < Self.mostWords
        figures.answers[isKnown ? word : "other", default: 0] += 1
    }

    // MARK: Times and figures

    private func checkTimes() {
        nextTick = now + Self.tick
        for (tag, number) in queue.overdue(at: now) {
            services[number % services.count].overdue(
                tag, on: number, silence: Self.silence, now: now)
        }
        for (service, errand) in errands where now >= errand.since + Self.silence {
            services[service].overdue(
                Self.errandTag, on: errand.connection, silence: Self.silence, now: now)
        }
        for service in services { service.checkTimes(now: now) }
        queue.checkTimes(at: now)
    }

    private func publish() {
        let former = figures
        figures.connections = services.reduce(0) { $0 + $1.openCount }
        figures.connectionsFailed = services.reduce(0) { $0 + $1.failed }
        figures.goAways = services.reduce(0) { $0 + $1.goAways }
        figures.repeated = queue.repeated
        let troubles = services.compactMap { trouble($0) } + queue.troubles(at: now)
        let paused = troubles.filter(\.isPaused)
        figures.paused = paused.count
        figures.troubles = Array(
            (paused + troubles.filter { !$0.isPaused }).prefix(PushFigures.mostTroubles))
        figures.pause = paused.first.flatMap { first in
            queue.passes(unreachable: obstacles, at: now)
                ? nil : PushFigures.Pause(reason: first.reason, hint: first.hint)
        }
        let formerLimits = limits
        limits = queue.limits(unreachable: obstacles)
        shared.publish(figures, limits)
        guard now >= nextBeat || limits != formerLimits || former.troubles != figures.troubles
        else { return }
        nextBeat = now + Self.beatInterval
        // Before the answers go: the broker is to keep what comes back.
        beat()
    }

    private func trouble(_ service: ServiceConnections) -> PushFigures.Trouble? {
        let name = ServiceRoutes.environment(service.service).name
        let place = service.address.host + routes.name(service.service)
        guard queue.heldCounts[service.service] > 0 else { return nil }
        if let failure = obstacles[service.service] {
            return PushFigures.Trouble(
                environment: name, bundle: nil, isPaused: true,
                reason: "\(place): \(failure)",
                hint: provider.brand.reachHint)
        }
        let silentSince = queue.oldest(of: service.service) ?? service.openingSince
        guard let silentSince, now >= max(silentSince, service.lastAnswer) + Self.patience else {
            return nil
        }
        return PushFigures.Trouble(
            environment: name, bundle: nil, isPaused: true,
            reason: "\(place): no answer for more than 5 s",
            hint: "see that this machine reaches the service; it may be slow")
    }
}
