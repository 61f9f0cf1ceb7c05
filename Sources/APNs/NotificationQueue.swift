import BrokerAPI
import PlainText

/// The notifications that the sender holds, and what becomes of each: no sockets, no clock.
///
/// ```
///            ┌──────── stream refused ──────▶ resting ─┐
/// enqueue ─▶ waiting ◀─────────────────────────────────┘
///            │   ▲ connection lost, stream ended
///            ▼   │
///           on a stream ─▶ told, refused, device gone or set aside, later
///
/// waiting, resting ─▶ given back: withdrawn, held too long, its app or service in trouble
/// ```
///
/// Each ends with one answer. Times are milliseconds of the monotonic clock.
struct NotificationQueue {
    private enum State {
        case waiting
        /// Its stream was refused; it waits again from that time on.
        case resting(until: UInt64)
        case onStream(connection: Int, since: UInt64, tokenIssuedAt: Int64)
    }

    private struct Item {
        let request: APNsRequest
        let lane: Int
        /// When the broker handed it over.
        let since: UInt64
        /// Tells it from an earlier one at the same place.
        let serial: UInt64
        var state = State.waiting
        /// Times that it was on a stream without an answer.
        var tries = 0
        var refusedStreams = 0
        var isWithdrawn = false
    }

    /// An app at one of the services, with the notifications that wait for a stream.
    private struct Lane {
        let app: App
        var health = AppHealth()
        /// The places of waiting items with their serials; the item may have ended since.
        var waiting: [(tag: UInt32, serial: UInt64)] = []
        /// Entries of `waiting` before this place are gone.
        var first = 0
        var waitingCount = 0
        /// Items that rest, or are on a stream.
        var restingCount = 0
        var openCount = 0
        var isListed = false

        var held: Int { waitingCount + restingCount + openCount }
    }

    private struct App: Hashable {
        let service: Int
        let bundle: ForeignText
    }

    /// Tries without an answer after which a notification goes back to the broker.
    private static let mostTries = 3
    /// The sender holds nothing longer before it is on a stream.
    private static let longestWait: UInt64 = 60_000
    private static let answerTime: UInt64 = 30_000
    /// Lanes without an item whose health is remembered.
    private static let mostIdleLanes = 1_024

    private var items: [Item?] = []
    private var free: [UInt32] = []
    private var tags: [HandOut: UInt32] = [:]
    private var lanes: [Lane] = []
    private var laneOfApp: [App: Int] = [:]
    /// Where the search for an idle lane goes on.
    private var nextIdle = 0
    /// Lanes with waiting items, by service, and whose turn is next.
    private var listed: [[Int]]
    private var turns: [Int]
    private var serial: UInt64 = 0
    private var resting: [(tag: UInt32, serial: UInt64)] = []
    private var answers: [WakeAnswer] = []
    /// True when an answer has changed what ``limits(unreachable:)`` or ``troubles(at:)`` say.
    var isStirred = false
    /// Notifications that were sent again because no answer came.
    private(set) var repeated: UInt64 = 0

    /// Apps whose health is remembered.
    var laneCount: Int { lanes.count }

    /// Notifications that are held, by service.
    private(set) var heldCounts: [Int]
    private let routes: ServiceRoutes

    init(_ routes: ServiceRoutes) {
        self.routes = routes
        listed = Array(repeating: [], count: routes.serviceCount)
        turns = Array(repeating: 0, count: routes.serviceCount)
        heldCounts = turns
    }

    /// Items that are held.
    var count: Int { items.count - free.count }

    mutating func takeAnswers() -> [WakeAnswer] {
        defer { answers.removeAll(keepingCapacity: true) }
        return answers
    }

    // MARK: Coming and going

    mutating func enqueue(_ request: APNsRequest, at now: UInt64) {
        let lane = laneIndex(
            App(
                service: routes.service(of: request.topic, in: request.environment),
                bundle: ForeignText(request.topic)))
        serial += 1
        let item = Item(request: request, lane: lane, since: now, serial: serial)
        let tag: UInt32
        if let place = free.popLast() {
            tag = place
            items[Int(place)] = item
        } else {
            tag = UInt32(items.count)
            items.append(item)
        }
        tags[request.handOut] = tag
        heldCounts[lanes[lane].app.service] += 1
        list(tag, serial, in: lane)
    }

    /// Drops what the broker has no use for any more, unless it is on a stream already.
    mutating func withdraw(_ handOuts: [HandOut]) {
        for handOut in handOuts {
            guard let tag = tags[handOut], let item = items[Int(tag)] else { continue }
            switch item.state {
            case .waiting, .resting: end(tag, .givenBack, "the client has come back")
            case .onStream: items[Int(tag)]?.isWithdrawn = true
            }
        }
    }

    private mutating func laneIndex(_ app: App) -> Int {
        if let lane = laneOfApp[app] { return lane }
        let lane = idleLane() ?? lanes.count
        if lane < lanes.count {
            laneOfApp[lanes[lane].app] = nil
            lanes[lane] = Lane(app: app)
        } else {
            lanes.append(Lane(app: app))
        }
        laneOfApp[app] = lane
        return lane
    }

    /// A lane without an item, whose health is to be forgotten, once many are remembered: names of
    /// apps come from clients, which may invent any number of them.
    private mutating func idleLane() -> Int? {
        guard lanes.count >= Self.mostIdleLanes else { return nil }
        for _ in lanes.indices {
            nextIdle = nextIdle + 1 < lanes.count ? nextIdle + 1 : 0
            if lanes[nextIdle].held == 0, !lanes[nextIdle].isListed { return nextIdle }
        }
        return nil
    }

    private mutating func list(_ tag: UInt32, _ serial: UInt64, in lane: Int) {
        lanes[lane].waiting.append((tag, serial))
        lanes[lane].waitingCount += 1
        guard !lanes[lane].isListed else { return }
        lanes[lane].isListed = true
        listed[lanes[lane].app.service].append(lane)
    }

    private mutating func end(_ tag: UInt32, _ outcome: WakeAnswer.Outcome, _ reason: String) {
        guard let item = items[Int(tag)] else { return }
        leave(item)
        items[Int(tag)] = nil
        free.append(tag)
        tags[item.request.handOut] = nil
        heldCounts[lanes[item.lane].app.service] -= 1
        answers.append(WakeAnswer(item.request.handOut, outcome, reason: reason))
    }

    private mutating func leave(_ item: Item) {
        switch item.state {
        case .waiting: lanes[item.lane].waitingCount -= 1
        case .resting: lanes[item.lane].restingCount -= 1
        case .onStream: lanes[item.lane].openCount -= 1
        }
    }

    /// Gives everything back, because the broker stops.
    mutating func giveBackAll(_ reason: String) {
        for tag in items.indices { end(UInt32(tag), .givenBack, reason) }
    }

    // MARK: Sending

    func waits(for service: Int) -> Bool {
        listed[service].contains { lanes[$0].waitingCount > 0 }
    }

    /// True when a notification that waits may be sent now.
    func maySend(to service: Int, at now: UInt64) -> Bool {
        listed[service].contains {
            lanes[$0].waitingCount > 0
                && lanes[$0].health.maySend(open: lanes[$0].openCount, at: now)
        }
    }

    /// Takes the next notification for a service; the apps have their turns. The caller puts it on a
    /// stream or gives it back with ``unsent(_:)``.
    mutating func next(for service: Int, at now: UInt64) -> UInt32? {
        var looks = 0
        while looks < listed[service].count {
            if turns[service] >= listed[service].count { turns[service] = 0 }
            let place = turns[service]
            let lane = listed[service][place]
            guard lanes[lane].waitingCount > 0 else {
                lanes[lane].isListed = false
                lanes[lane].waiting.removeAll(keepingCapacity: true)
                lanes[lane].first = 0
                listed[service].swapAt(place, listed[service].count - 1)
                listed[service].removeLast()
                continue
            }
            turns[service] += 1
            looks += 1
            guard lanes[lane].health.maySend(open: lanes[lane].openCount, at: now) else { continue }
            if let tag = firstWaiting(lane) { return tag }
        }
        return nil
    }

    private mutating func firstWaiting(_ lane: Int) -> UInt32? {
        while lanes[lane].first < lanes[lane].waiting.count {
            let (tag, serial) = lanes[lane].waiting[lanes[lane].first]
            lanes[lane].first += 1
            if lanes[lane].first > 4_096 {
                lanes[lane].waiting.removeFirst(lanes[lane].first)
                lanes[lane].first = 0
            }
            guard items[Int(tag)]?.serial == serial, case .waiting? = items[Int(tag)]?.state else {
                continue
            }
            return tag
        }
        return nil
    }

    func request(_ tag: UInt32) -> APNsRequest? { items[Int(tag)]?.request }

    mutating func sent(
        _ tag: UInt32, on connection: Int, tokenIssuedAt: Int64, at now: UInt64
    ) {
        guard let lane = items[Int(tag)]?.lane else { return }
        items[Int(tag)]?.state = .onStream(
            connection: connection, since: now, tokenIssuedAt: tokenIssuedAt)
        lanes[lane].waitingCount -= 1
        lanes[lane].openCount += 1
        lanes[lane].health.sent(at: now)
    }

    /// The connection did not take it.
    mutating func unsent(_ tag: UInt32) {
        guard let item = items[Int(tag)] else { return }
        lanes[item.lane].waiting.append((tag, item.serial))
    }

    /// When a notification went onto its stream, and with which provider token.
    func sending(of tag: UInt32) -> (since: UInt64, tokenIssuedAt: Int64)? {
        guard case .onStream(_, let since, let issuedAt)? = items[Int(tag)]?.state else {
            return nil
        }
        return (since, issuedAt)
    }

    // MARK: What comes back

    /// Has a notification that got no judgement wait again.
    private mutating func waitAgain(_ tag: UInt32) {
        guard let item = items[Int(tag)] else { return }
        guard !item.isWithdrawn else { return end(tag, .givenBack, "the client has come back") }
        leave(item)
        items[Int(tag)]?.state = .waiting
        list(tag, item.serial, in: item.lane)
        repeated += 1
    }

    /// Takes Apple's answer to a notification.
    mutating func answered(_ tag: UInt32, _ answer: AppleAnswer, at now: UInt64) {
        guard let item = items[Int(tag)] else { return }
        let word = answer.word
        switch answer.meaning {
        case .accepted:
            lanes[item.lane].health.passed(at: now)
            end(tag, .accepted, word)
        case .gone(let atMs):
            lanes[item.lane].health.passed(at: now)
            end(tag, .gone(atMs: atMs), word)
        case .unknownDevice: setAside(tag, word, at: now)
        case .unfitKey:
            // While the key is good for anybody, it is this device that is not ours.
            let identity = ServiceRoutes.identity(lanes[item.lane].app.service)
            let isGood = lanes.contains {
                ServiceRoutes.identity($0.app.service) == identity && $0.health.passes(at: now)
            }
            if isGood {
                setAside(tag, word, at: now)
            } else {
                refuse(tag, .unfitKey, word, at: now)
            }
        case .credentials, .otherKey: refuse(tag, .credentials, word, at: now)
        case .expiredToken: refuse(tag, .expiredToken, word, at: now)
        case .tooManyTokens: refuse(tag, .tooManyTokens, word, at: now)
        case .topic: refuse(tag, .topic, word, at: now)
        case .busyDevice: end(tag, .later(milliseconds: 60_000), word)
        case .service: end(tag, .later(milliseconds: 5_000), word)
        case .closing: repeatOrEnd(tag, .later(milliseconds: 1_000), word)
        case .refused: end(tag, .refused, word)
        }
    }

    private mutating func setAside(_ tag: UInt32, _ word: String, at now: UInt64) {
        guard let lane = items[Int(tag)]?.lane else { return }
        let former = lanes[lane].health.most
        lanes[lane].health.unknownDevice(at: now)
        if lanes[lane].health.most != former { isStirred = true }
        end(tag, .badDevice, word)
    }

    private mutating func refuse(
        _ tag: UInt32, _ cause: AppHealth.Cause, _ word: String, at now: UInt64
    ) {
        guard let item = items[Int(tag)] else { return }
        isStirred = true
        let verdict = lanes[item.lane].health.refused(
            cause, word, device: item.request.handOut.device, at: now)
        switch verdict {
        case .later: end(tag, .later(milliseconds: 1_000), word)
        case .giveBack: end(tag, .givenBack, word)
        case .thisOne:
            // An app is right or wrong for all its devices, so this may be the first of many.
            let isFirst = item.request.attempt < Self.mostTries
            switch cause {
            case .topic: end(tag, isFirst ? .later(milliseconds: 5_000) : .refused, word)
            case .credentials, .unfitKey, .expiredToken:
                end(tag, .later(milliseconds: 5_000), word)
            case .tooManyTokens: end(tag, .later(milliseconds: 60_000), word)
            }
        }
    }

    /// Has a notification sent again, because what was wrong with its first sending is mended.
    mutating func sendAgain(_ tag: UInt32, _ word: String) {
        repeatOrEnd(tag, .later(milliseconds: 1_000), word)
    }

    private mutating func repeatOrEnd(
        _ tag: UInt32, _ outcome: WakeAnswer.Outcome, _ reason: String
    ) {
        guard let item = items[Int(tag)] else { return }
        items[Int(tag)]?.tries += 1
        if item.tries + 1 >= Self.mostTries {
            end(tag, outcome, reason)
        } else {
            waitAgain(tag)
        }
    }

    /// A stream ended without an answer. The first that Apple did not begin to process is sent again
    /// at once; more of them after growing pauses, since a service may refuse for ever.
    mutating func streamEnded(_ tag: UInt32, isUnprocessed: Bool, at now: UInt64) {
        guard let item = items[Int(tag)] else { return }
        guard isUnprocessed else {
            return repeatOrEnd(tag, .later(milliseconds: 5_000), "no answer")
        }
        items[Int(tag)]?.refusedStreams += 1
        switch item.refusedStreams {
        case 0: waitAgain(tag)
        case 1...Self.mostTries:
            guard !item.isWithdrawn else { return waitAgain(tag) }
            leave(item)
            repeated += 1
            items[Int(tag)]?.state = .resting(
                until: now + 500 << UInt64(item.refusedStreams))
            lanes[item.lane].restingCount += 1
            resting.append((tag, item.serial))
        default: end(tag, .later(milliseconds: 5_000), "the service refuses its stream")
        }
    }

    /// A connection has ended with these notifications on it. `wasUseful` is false for one that never
    /// gave an answer: then nothing reached Apple, and it is no attempt.
    mutating func connectionLost(_ connection: Int, wasUseful: Bool, _ reason: String) {
        for tag in items.indices {
            guard case .onStream(connection, _, _)? = items[tag]?.state else { continue }
            repeatOrEnd(
                UInt32(tag), wasUseful ? .later(milliseconds: 5_000) : .givenBack, reason)
        }
    }

    /// Notifications that have had no answer for too long, with their connections.
    func overdue(at now: UInt64) -> [(tag: UInt32, connection: Int)] {
        var list: [(tag: UInt32, connection: Int)] = []
        for tag in items.indices {
            if case .onStream(let connection, let since, _)? = items[tag]?.state,
                now >= since + Self.answerTime
            {
                list.append((UInt32(tag), connection))
            }
        }
        return list
    }

    /// Wakes those that rest, and gives back what has waited for too long.
    mutating func checkTimes(at now: UInt64) {
        let list = resting
        resting.removeAll(keepingCapacity: true)
        for (tag, serial) in list {
            guard items[Int(tag)]?.serial == serial,
                case .resting(let until)? = items[Int(tag)]?.state
            else { continue }
            if until > now {
                resting.append((tag, serial))
            } else if let item = items[Int(tag)] {
                leave(item)
                items[Int(tag)]?.state = .waiting
                self.list(tag, serial, in: item.lane)
            }
        }
        for tag in items.indices {
            guard case .waiting? = items[tag]?.state, let since = items[tag]?.since,
                now >= since + Self.longestWait
            else { continue }
            end(UInt32(tag), .givenBack, "it has waited too long for the service")
        }
    }

    // MARK: Trouble

    /// New credentials have been read.
    mutating func forgive() { for lane in lanes.indices { lanes[lane].health.forgive() } }

    /// Gives back what apps and services in trouble have no use for. Of a service that cannot be
    /// reached one notification is kept, which says that connecting still makes sense; one of each app
    /// when there are several keys, whose services the broker does not know.
    mutating func giveBackSurplus(unreachable: [String?]) {
        for service in unreachable.indices {
            guard let reason = unreachable[service] else { continue }
            var kept = 0
            for lane in listed[service] {
                while kept + lanes[lane].waitingCount > 1, lanes[lane].waitingCount > 0,
                    let tag = firstWaiting(lane)
                {
                    end(tag, .givenBack, reason)
                }
                kept += routes.identities.count > 1 ? 0 : lanes[lane].waitingCount
            }
        }
        for service in listed.indices {
            for lane in listed[service] {
                guard let most = lanes[lane].health.most else { continue }
                while lanes[lane].held > most, lanes[lane].waitingCount > 0,
                    let tag = firstWaiting(lane)
                {
                    end(tag, .givenBack, "its app is in trouble")
                }
            }
        }
    }

    /// What the broker is to keep, as ``giveBackSurplus(unreachable:)`` would give it back.
    func limits(unreachable: [String?]) -> [WakeDemand.Limit] {
        var limits: [WakeDemand.Limit] = []
        let isForAllApps = routes.identities.count == 1
        for service in unreachable.indices where unreachable[service] != nil && isForAllApps {
            limits.append(
                WakeDemand.Limit(
                    ServiceRoutes.environment(service), bundle: nil,
                    most: max(0, 1 - heldCounts[service])))
        }
        for lane in lanes {
            let isUnreachable = !isForAllApps && unreachable[lane.app.service] != nil
            guard let most = isUnreachable ? 1 : lane.health.most else { continue }
            limits.append(
                WakeDemand.Limit(
                    ServiceRoutes.environment(lane.app.service), bundle: lane.app.bundle.string,
                    most: max(0, most - lane.held)))
        }
        return limits
    }

    /// What is wrong with apps.
    func troubles(at now: UInt64) -> [PushFigures.Trouble] {
        lanes.compactMap {
            $0.health.trouble(
                bundle: $0.app.bundle.string,
                environment: ServiceRoutes.environment($0.app.service).name, at: now)
        }
    }

    /// True when notifications of any app pass, at a service that can be reached.
    func passes(unreachable: [String?], at now: UInt64) -> Bool {
        lanes.contains { unreachable[$0.app.service] == nil && $0.health.passes(at: now) }
    }

    /// Since when the oldest notification that is on a stream has had no answer; `nil` without one.
    func oldest(of service: Int) -> UInt64? {
        var oldest: UInt64?
        for tag in items.indices {
            guard case .onStream(_, let since, _)? = items[tag]?.state, let lane = items[tag]?.lane,
                lanes[lane].app.service == service
            else { continue }
            oldest = min(oldest ?? since, since)
        }
        return oldest
    }
}
