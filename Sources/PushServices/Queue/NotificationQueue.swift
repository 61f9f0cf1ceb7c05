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
    enum State {
        case waiting
        /// Its stream was refused; it waits again from that time on.
        case resting(until: UInt64)
        case onStream(connection: Int, since: UInt64, tokenIssuedAt: Int64)
    }

    struct Item {
        let request: NotificationRequest
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
    struct Lane {
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

    struct App: Hashable {
        let service: Int
        let bundle: ForeignText
    }

    /// Tries without an answer after which a notification goes back to the broker.
    static let mostTries = 3
    /// The sender holds nothing longer before it is on a stream.
    static let longestWait: UInt64 = 60_000
    static let answerTime: UInt64 = 30_000
    /// Lanes without an item whose health is remembered.
    private static let mostIdleLanes = 1_024

    var items: [Item?] = []
    private var free: [UInt32] = []
    private var tags: [HandOut: UInt32] = [:]
    var lanes: [Lane] = []
    private var laneOfApp: [App: Int] = [:]
    /// Where the search for an idle lane goes on.
    private var nextIdle = 0
    /// Lanes with waiting items, by service, and whose turn is next.
    var listed: [[Int]]
    private var turns: [Int]
    private var serial: UInt64 = 0
    var resting: [(tag: UInt32, serial: UInt64)] = []
    private var answers: [WakeAnswer] = []
    /// True when an answer has changed what ``limits(unreachable:)`` or ``troubles(at:)`` say.
    var isStirred = false
    /// Notifications that were sent again because no answer came.
    var repeated: UInt64 = 0

    /// Apps whose health is remembered.
    var laneCount: Int { lanes.count }

    /// Notifications that are held, by service.
    private(set) var heldCounts: [Int]
    let routes: ServiceRoutes
    let brand: ServiceBrand

    init(_ routes: ServiceRoutes, _ brand: ServiceBrand = .apple) {
        self.routes = routes
        self.brand = brand
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

    mutating func enqueue(_ request: NotificationRequest, at now: UInt64) {
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

    mutating func list(_ tag: UInt32, _ serial: UInt64, in lane: Int) {
        lanes[lane].waiting.append((tag, serial))
        lanes[lane].waitingCount += 1
        guard !lanes[lane].isListed else { return }
        lanes[lane].isListed = true
        listed[lanes[lane].app.service].append(lane)
    }

    mutating func end(_ tag: UInt32, _ outcome: WakeAnswer.Outcome, _ reason: String) {
        guard let item = items[Int(tag)] else { return }
        leave(item)
        items[Int(tag)] = nil
        free.append(tag)
        tags[item.request.handOut] = nil
        heldCounts[lanes[item.lane].app.service] -= 1
        answers.append(WakeAnswer(item.request.handOut, outcome, reason: reason))
    }

    mutating func leave(_ item: Item) {
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

    mutating func firstWaiting(_ lane: Int) -> UInt32? {
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

    func request(_ tag: UInt32) -> NotificationRequest? { items[Int(tag)]?.request }

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
}
