import BrokerAPI
import CLinux
import Glibc
import SystemFiles
import Threads

/// The loop of the sender's thread: requests to connections, answers back, and what ends each wait.
final class SenderLoop {
    /// A request without an answer.
    private struct Item {
        let request: APNsRequest
        /// Attempts that got no answer.
        var attempts = 0
        /// The connection that has it; `nil` while it waits.
        var connection: Int?
        /// When the answer must be there, in milliseconds of the monotonic clock.
        var deadline: UInt64 = 0
        /// ``ProviderTokens/issuedAt`` of the token that it went with.
        var tokenIssuedAt: Int64 = 0
    }

    /// The connections of one endpoint, and the requests that wait for a stream on one.
    private struct Endpoint {
        let address: APNsSettings.Endpoint
        var pool: EndpointPool
        var waiting: [UInt32] = []
        /// Entries of `waiting` in front of this place are gone.
        var first = 0
        var addresses: [HostAddresses.Address] = []
        var nextAddress = 0
        var isResolving = false

        var waitingCount: Int { waiting.count - first }
    }

    private struct Link {
        let endpoint: Int
        let connection: APNsConnection
        /// The last time at which a request was on it.
        var lastUse: UInt64
    }

    private static let attempts = 3
    private static let answerMilliseconds: UInt64 = 30_000
    private static let pingAfter: UInt64 = 1_800_000
    private static let pingAnswer: UInt64 = 10_000
    private static let tick: UInt64 = 100
    private static let beatInterval: UInt64 = 5_000
    private static let mostPostponed: UInt64 = 5_000
    /// Words of answers that are counted one by one.
    private static let mostWords = 64

    private let settings: APNsSettings
    private var credentials: APNsCredentials
    private let inbox: SenderInbox
    private let shared: SenderShared
    private let report: @Sendable ([WakeAnswer]) -> Void
    private let beat: @Sendable () -> Void

    private var tokens: ProviderTokens?
    private var health = SenderHealth()
    private var endpoints: [Endpoint]
    private var links: [Int: Link] = [:]
    private var nextLink = 0
    private var items: [Item?] = []
    private var free: [UInt32] = []
    private var answers: [WakeAnswer] = []
    private var fields = RequestFields()
    private var figures = PushFigures()
    /// Answers by Apple's word.
    private var now: UInt64 = 0
    private var nextTick: UInt64 = 0
    private var nextBeat: UInt64 = 0
    private var isStopping = false

    init(
        _ settings: APNsSettings, _ credentials: APNsCredentials, _ inbox: SenderInbox,
        _ shared: SenderShared, _ report: @escaping @Sendable ([WakeAnswer]) -> Void,
        _ beat: @escaping @Sendable () -> Void
    ) {
        self.settings = settings
        self.credentials = credentials
        self.inbox = inbox
        self.shared = shared
        self.report = report
        self.beat = beat
        endpoints = [settings.production, settings.sandbox].map {
            Endpoint(address: $0, pool: EndpointPool(most: settings.connections))
        }
        if case .key(_, let keyID, let teamID, let file) = settings.identity,
            let key = credentials.key
        {
            tokens = ProviderTokens(
                key: key, keyID: keyID, teamID: teamID, file: file,
                now: hermes_wall_ms() / 1_000)
        }
    }

    // MARK: The loop

    func run() {
        while !isStopping {
            wait()
            now = hermes_monotonic_ms()
            takeInbox()
            if now >= nextTick { checkTimes() }
            for index in endpoints.indices { serve(index) }
            for (number, link) in links { flush(number, link.connection) }
            deliverAnswers()
            publish()
        }
        for tag in items.indices where items[tag] != nil {
            answer(UInt32(tag), .later(milliseconds: 1_000), "the broker stops")
        }
        for link in links.values { link.connection.sayGoodbye() }
        links = [:]
        deliverAnswers()
    }

    /// Sleeps until a socket or the inbox has something, or the next tick.
    private func wait() {
        var events = [pollfd(fd: inbox.eventDescriptor, events: Int16(POLLIN), revents: 0)]
        let numbers = Array(links.keys)
        for number in numbers {
            guard let connection = links[number]?.connection else { continue }
            events.append(
                pollfd(fd: connection.descriptor, events: connection.interest, revents: 0))
        }
        let isIdle = items.count == free.count
        let count = poll(&events, nfds_t(events.count), isIdle ? 1_000 : CInt(Self.tick))
        guard count > 0 else { return }
        now = hermes_monotonic_ms()
        for (number, event) in zip(numbers, events.dropFirst()) where event.revents != 0 {
            guard let connection = links[number]?.connection else { continue }
            let wasOpen = connection.state == .open
            attempt(number) { () throws(APNsConnection.Ended) in
                try connection.advance(now: now)
            }
            guard let endpoint = links[number]?.endpoint else { continue }
            if !wasOpen, connection.state == .open {
                endpoints[endpoint].pool.opened()
            }
            takeEvents(number)
        }
    }

    private func takeInbox() {
        let content = inbox.take()
        isStopping = content.isStopping
        if let credentials = content.credentials {
            self.credentials = credentials
            if let key = credentials.key { tokens?.use(key) }
            health.forgive()
        }
        for (index, found) in content.addresses {
            endpoints[index].isResolving = false
            endpoints[index].addresses = found.addresses
            endpoints[index].nextAddress = 0
            if let failure = found.failure { connectFailed(index, failure) }
        }
        for batch in content.batches {
            for request in batch() { enqueue(request) }
        }
    }

    private func enqueue(_ request: APNsRequest) {
        let item = Item(request: request)
        let tag: UInt32
        if let place = free.popLast() {
            tag = place
            items[Int(place)] = item
        } else {
            tag = UInt32(items.count)
            items.append(item)
        }
        endpoints[request.environment == .production ? 0 : 1].waiting.append(tag)
    }

    // MARK: Sending

    /// Sends what waits for one endpoint, and sees to its connections.
    private func serve(_ index: Int) {
        guard endpoints[index].waitingCount > 0 else {
            _ = endpoints[index].pool.opens(connections: 0, waiting: false, at: now)
            return
        }
        if health.isPaused(at: now), let pause = health.pause {
            // The broker keeps it until it is asked for again.
            postpone(
                index, milliseconds: min(pause.until - now, Self.mostPostponed), pause.words)
            return
        }
        for (number, link) in links where link.endpoint == index && link.connection.room > 0 {
            send(on: number)
        }
        let count = links.values.count { $0.endpoint == index }
        let waits = endpoints[index].waitingCount > 0
        if endpoints[index].pool.opens(connections: count, waiting: waits, at: now) { open(index) }
        // Without any connection the broker keeps what is owed.
        if waits, let failure = endpoints[index].pool.failure,
            !links.values.contains(where: { $0.endpoint == index }), !endpoints[index].isResolving
        {
            postpone(
                index,
                milliseconds: min(
                    max(1_000, endpoints[index].pool.backoff(at: now)), Self.mostPostponed),
                failure)
        }
    }

    private func send(on number: Int) {
        guard let link = links[number] else { return }
        let connection = link.connection
        var token: String?
        if tokens != nil {
            token = tokens?.current(now: hermes_wall_ms() / 1_000)
            guard token != nil else { return health.lackToken(at: now) }
        }
        var room = connection.room
        while room > 0, let tag = nextWaiting(link.endpoint) {
            guard let request = items[Int(tag)]?.request else { continue }
            room -= 1
            fill(request, to: endpoints[link.endpoint].address.host, token)
            do throws(HTTP2Client.Failure) {
                try connection.http2.submit(fields, payload: request.payload, tag: tag)
            } catch {
                endpoints[link.endpoint].waiting.append(tag)
                return drop(number, error.description)
            }
            items[Int(tag)]?.connection = number
            items[Int(tag)]?.deadline = now + Self.answerMilliseconds
            items[Int(tag)]?.tokenIssuedAt = tokens?.issuedAt ?? 0
        }
        links[number]?.lastUse = now
    }

    private func nextWaiting(_ index: Int) -> UInt32? {
        guard endpoints[index].waitingCount > 0 else { return nil }
        let tag = endpoints[index].waiting[endpoints[index].first]
        endpoints[index].first += 1
        if endpoints[index].first == endpoints[index].waiting.count {
            endpoints[index].waiting.removeAll(keepingCapacity: true)
            endpoints[index].first = 0
        } else if endpoints[index].first > 4_096 {
            endpoints[index].waiting.removeFirst(endpoints[index].first)
            endpoints[index].first = 0
        }
        return tag
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
        fields.add("apns-priority", request.priority)
        fields.add("apns-expiration", "\(request.expiration)", isUnique: true)
        fields.add("apns-collapse-id", request.collapseID, isUnique: true)
        fields.add("apns-id", uuid: request.notificationID)
    }

    /// Answers all that waits for an endpoint with `later`.
    private func postpone(_ index: Int, milliseconds: UInt64, _ reason: String) {
        while let tag = nextWaiting(index) {
            answer(tag, .later(milliseconds: milliseconds), reason)
        }
    }

    private func answer(_ tag: UInt32, _ outcome: WakeAnswer.Outcome, _ reason: String) {
        guard let item = items[Int(tag)] else { return }
        answers.append(WakeAnswer(id: item.request.id, outcome: outcome, reason: reason))
        items[Int(tag)] = nil
        free.append(tag)
    }

    private func deliverAnswers() {
        guard !answers.isEmpty else { return }
        report(answers)
        answers.removeAll(keepingCapacity: true)
    }

    // MARK: Connections

    private func open(_ index: Int) {
        guard endpoints[index].nextAddress < endpoints[index].addresses.count else {
            resolve(index)
            return
        }
        let address = endpoints[index].addresses[endpoints[index].nextAddress]
        do throws(APNsConnection.Ended) {
            let connection = try APNsConnection(
                to: address, host: endpoints[index].address.host, credentials.tls, now: now)
            links[nextLink] = Link(endpoint: index, connection: connection, lastUse: now)
            nextLink += 1
        } catch {
            connectFailed(index, error.description)
        }
    }

    /// Asks for the addresses of an endpoint, on a thread of its own unless they are numbers.
    private func resolve(_ index: Int) {
        let endpoint = endpoints[index].address
        let numeric = HostAddresses(endpoint, isNumericOnly: true)
        guard numeric.failure != nil else {
            endpoints[index].addresses = numeric.addresses
            endpoints[index].nextAddress = 0
            return open(index)
        }
        guard !endpoints[index].isResolving else { return }
        endpoints[index].isResolving = true
        let inbox = inbox
        do throws(ThreadFailure) {
            try WorkerThread.start(name: "hermes-resolve") {
                let found = HostAddresses(endpoint)
                inbox.change { $0.addresses.append((index, found)) }
            }
        } catch {
            endpoints[index].isResolving = false
            connectFailed(index, error.description)
        }
    }

    /// Notes that an address was of no use; the next one is tried before a pause.
    private func connectFailed(_ index: Int, _ reason: String) {
        figures.connectionsFailed += 1
        endpoints[index].nextAddress += 1
        endpoints[index].pool.failed(reason, random: .random(in: 0...1), at: now)
    }

    private func flush(_ number: Int, _ connection: APNsConnection) {
        attempt(number) { () throws(APNsConnection.Ended) in try connection.flush() }
    }

    /// Carries something out on a connection, and drops it if that ends it.
    private func attempt(_ number: Int, _ body: () throws(APNsConnection.Ended) -> Void) {
        do throws(APNsConnection.Ended) {
            try body()
        } catch {
            takeEvents(number)
            drop(number, error.description)
        }
    }

    /// Ends a connection. What was sent on it and not answered is sent again.
    private func drop(_ number: Int, _ reason: String) {
        guard let link = links.removeValue(forKey: number) else { return }
        for tag in items.indices where items[tag]?.connection == number {
            repeatItem(UInt32(tag), link.endpoint, isCounted: true)
        }
        if link.connection.state == .open {
            // It worked: a new one is tried at once, at the same address.
            link.connection.sayGoodbye()
        } else {
            connectFailed(link.endpoint, reason)
        }
    }

    /// Has a request sent again, on another stream. One that the service did not begin to process
    /// counts as no attempt.
    private func repeatItem(_ tag: UInt32, _ endpoint: Int, isCounted: Bool) {
        guard var item = items[Int(tag)] else { return }
        figures.repeated += 1
        if isCounted { item.attempts += 1 }
        item.connection = nil
        items[Int(tag)] = item
        guard item.attempts < Self.attempts else {
            return answer(tag, .later(milliseconds: 5_000), "no answer")
        }
        endpoints[endpoint].waiting.append(tag)
    }

    /// Takes what came on a connection.
    private func takeEvents(_ number: Int) {
        guard let link = links[number] else { return }
        var end: String?
        for event in link.connection.http2.takeEvents() {
            switch event {
            case .answered(let tag, let status, let body):
                let answer = AppleAnswer(status: status, body: body)
                take(answer, tag, link.connection)
                if answer.endsConnection { end = answer.word }
            case .ended(let tag, let isUnprocessed):
                repeatItem(tag, link.endpoint, isCounted: !isUnprocessed)
            case .goAway: figures.goAways += 1
            }
        }
        let http2 = link.connection.http2
        if http2.isGoingAway, http2.openCount == 0 { end = "the service said goodbye" }
        if let end { drop(number, end) }
    }

    private func take(_ apple: AppleAnswer, _ tag: UInt32, _ connection: APNsConnection) {
        count(apple)
        health.note(apple, at: now)
        if apple.status != 403 { connection.isProven = true }
        // Many requests may have gone with the token that is too old: one new token is for all. The
        // present one is too old when the clocks differ.
        if apple.concern == .expiredToken,
            items[Int(tag)]?.tokenIssuedAt == tokens?.issuedAt,
            tokens?.renew(now: hermes_wall_ms() / 1_000) == false
        {
            health.lackToken(at: now)
        }
        answer(tag, apple.outcome, apple.word)
    }

    private func count(_ apple: AppleAnswer) {
        let word = apple.status == 200 ? "Success" : apple.word
        let isKnown = figures.answers[word] != nil || figures.answers.count < Self.mostWords
        figures.answers[isKnown ? word : "other", default: 0] += 1
    }

    // MARK: Times

    /// Ends waits that have taken too long, and counts.
    private func checkTimes() {
        nextTick = now + Self.tick
        for tag in items.indices {
            // Field by field: a copy of the item would retain its texts.
            guard let number = items[tag]?.connection, let deadline = items[tag]?.deadline,
                deadline <= now, let link = links[number]
            else { continue }
            if now - link.connection.lastInput >= Self.answerMilliseconds {
                drop(number, "no answer")
            } else {
                link.connection.http2.cancel(UInt32(tag))
                takeEvents(number)
            }
        }
        for (number, link) in links { checkTimes(number, link) }
    }

    private func checkTimes(_ number: Int, _ link: Link) {
        let connection = link.connection
        if connection.state != .open {
            if now >= connection.openingDeadline { drop(number, "no connection within 10 s") }
            return
        }
        if let pinged = connection.pingedAt {
            if now - pinged >= Self.pingAnswer { drop(number, "no answer to a PING") }
            return
        }
        guard connection.http2.openCount == 0 else { return }
        let others = links.values.count { $0.endpoint == link.endpoint }
        if others > 1, now - link.lastUse >= EndpointPool.idle {
            drop(number, "idle")
        } else if now - connection.lastInput >= Self.pingAfter {
            attempt(number) { () throws(APNsConnection.Ended) in
                try connection.ping(now: now)
            }
        }
    }

    private func publish() {
        let former = figures.pause
        figures.connections = links.values.count { $0.connection.state == .open }
        var until: UInt64 = 0
        figures.pause = nil
        if health.isPaused(at: now), let why = health.pause {
            until = why.until
            figures.pause = PushFigures.Pause(reason: why.words, hint: why.hint)
        } else if links.isEmpty,
            let failed = endpoints.first(where: { $0.pool.failure != nil })
        {
            until = now + failed.pool.backoff(at: now)
            figures.pause = PushFigures.Pause(
                reason: "\(failed.address.host): \(failed.pool.failure ?? "")",
                hint: "see that this machine reaches the service, and that push.apns.ca_file fits"
            )
        }
        shared.publish(figures, until: until)
        guard now >= nextBeat || former?.reason != figures.pause?.reason else { return }
        nextBeat = now + Self.beatInterval
        beat()
    }
}
