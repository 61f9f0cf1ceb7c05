import BrokerAPI
import CLinux
import Glibc

/// The loop of the sender's thread: brings the parts together, and knows sockets and the clock.
///
/// ``NotificationQueue`` holds the notifications and judges their answers, ``ServiceConnections``
/// the connections to each of Apple's services with each key, ``ProviderTokens`` a key's token in use.
final class SenderLoop {
    private static let tick: UInt64 = 100
    private static let beatInterval: UInt64 = 5_000
    /// Words of answers that are counted one by one.
    private static let mostWords = 64
    /// A connection that answers nothing for so long is quiet.
    private static let silence: UInt64 = 30_000
    /// A service without an answer for so long is told to be slow.
    private static let patience: UInt64 = 5_000

    private var credentials: APNsCredentials
    private let inbox: SenderInbox
    private let shared: SenderShared
    private let report: @Sendable ([WakeAnswer]) -> Void
    private let beat: @Sendable () -> Void

    /// By identity; `nil` for a certificate.
    private var tokens: [ProviderTokens?]
    private let routes: ServiceRoutes
    private var queue: NotificationQueue
    private let services: [ServiceConnections]
    private var fields = RequestFields()
    private var figures = PushFigures()
    private var limits: [WakeDemand.Limit] = []
    /// Why nothing can be sent to each service; `nil` while nothing is known.
    private var obstacles: [String?]
    /// By identity.
    private var lacksToken: [Bool]
    private var now: UInt64 = 0
    private var nextTick: UInt64 = 0
    private var nextBeat: UInt64 = 0
    private var isStopping = false

    init(
        _ settings: APNsSettings, _ credentials: APNsCredentials, _ inbox: SenderInbox,
        _ shared: SenderShared, _ report: @escaping @Sendable ([WakeAnswer]) -> Void,
        _ beat: @escaping @Sendable () -> Void
    ) {
        self.credentials = credentials
        self.inbox = inbox
        self.shared = shared
        self.report = report
        self.beat = beat
        let routes = ServiceRoutes(settings)
        self.routes = routes
        queue = NotificationQueue(routes)
        services = (0..<routes.serviceCount).map { service in
            let address =
                ServiceRoutes.environment(service) == .production
                ? settings.production : settings.sandbox
            return ServiceConnections(
                service, address, settings, inbox, of: routes.serviceCount)
        }
        obstacles = services.map { _ in nil }
        lacksToken = routes.identities.map { _ in false }
        tokens = zip(routes.identities, credentials.proofs).map { identity, proof in
            guard case .key(_, let keyID, let teamID, let file) = identity, let key = proof.key
            else { return nil }
            return ProviderTokens(
                key: key, keyID: keyID, teamID: teamID, file: file, now: Self.wallClock)
        }
    }

    /// UNIX time in seconds.
    private static var wallClock: Int64 { hermes_wall_ms() / 1_000 }

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
                service.connect(
                    credentials.proofs[ServiceRoutes.identity(service.service)].tls,
                    waiting: queue.maySend(to: service.service, at: now), now: now)
                service.flush(now: now)
                takeEvents(service)
            }
            let found = services.map {
                lacksToken[ServiceRoutes.identity($0.service)]
                    ? "no provider token can be made yet" : $0.failure
            }
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
            self.credentials = credentials
            for (identity, proof) in credentials.proofs.enumerated() {
                if let key = proof.key { tokens[identity]?.use(key) }
            }
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
        let identity = ServiceRoutes.identity(service.service)
        var token: String?
        if tokens[identity] != nil {
            token = tokens[identity]?.current(now: Self.wallClock)
            lacksToken[identity] = token == nil
            if token == nil { return }
        }
        let issuedAt = tokens[identity]?.issuedAt ?? 0
        for (number, room) in service.rooms() {
            var left = room
            while left > 0, let tag = queue.next(for: service.service, at: now) {
                guard let request = queue.request(tag) else { continue }
                left -= 1
                fill(request, to: service.address.host, token)
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

    private func fill(_ request: APNsRequest, to host: String, _ token: String?) {
        fields.removeAll()
        fields.add(":method", "POST")
        fields.add(":scheme", "https")
        fields.add(":authority", host)
        fields.add(":path", "/3/device/", hexadecimal: request.token)
        if let token { fields.add("authorization", "bearer \(token)") }
        fields.add("apns-topic", request.topic)
        fields.add("apns-push-type", request.pushType)
        fields.add("apns-priority", request.priorityText)
        fields.add("apns-expiration", "\(request.expiration)", isUnique: true)
        fields.add("apns-collapse-id", request.collapseID, isUnique: true)
        fields.add("apns-id", uuid: request.notificationID)
    }

    // MARK: What comes back

    private func takeEvents(_ service: ServiceConnections) {
        for event in service.takeEvents() {
            switch event {
            case .answered(let tag, let answer): take(answer, tag, service)
            case .streamEnded(let tag, let isUnprocessed):
                queue.streamEnded(tag, isUnprocessed: isUnprocessed, at: now)
            case .lost(let number, let wasUseful, let reason):
                queue.connectionLost(number, wasUseful: wasUseful, reason)
            }
        }
    }

    private func take(_ answer: AppleAnswer, _ tag: UInt32, _ service: ServiceConnections) {
        count(answer)
        guard let sending = queue.sending(of: tag) else { return }
        service.answered(after: now - min(now, sending.since), now: now)
        let identity = ServiceRoutes.identity(service.service)
        guard !isMended(answer, sending.tokenIssuedAt, &tokens[identity]) else {
            queue.sendAgain(tag, answer.word)
            return
        }
        queue.answered(tag, answer, at: now)
    }

    /// True when the answer was about a provider token that is not in use any more.
    private func isMended(
        _ answer: AppleAnswer, _ issuedAt: Int64, _ tokens: inout ProviderTokens?
    ) -> Bool {
        guard tokens != nil else { return false }
        switch answer.meaning {
        case .accepted:
            tokens?.accepted(issuedAt)
            return false
        case .credentials: return tokens?.refused(issuedAt, now: Self.wallClock) ?? false
        case .expiredToken: return tokens?.expired(issuedAt, now: Self.wallClock) ?? false
        case .tooManyTokens: return tokens?.tooMany(issuedAt, now: Self.wallClock) ?? false
        // The next connection begins with the token in use.
        case .otherKey: return true
        case .gone, .unknownDevice, .unfitKey, .topic, .busyDevice, .service, .closing, .refused:
            return false
        }
    }

    private func count(_ answer: AppleAnswer) {
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
                hint:
                    "see that this machine reaches the service, that wakes.apns.ca_file fits, and that Apple takes the key or the certificate"
            )
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
