import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

/// All interleavings of what can happen while a stored queue is read for a client that has come
/// back. In none of them a client waits for an event that will never come.
@Suite("Every order of load, loss, take-over, drop, expiry, end and refusal")
struct LoadModelTests {
    @Test(
        "each client gets CONNACK, and then its messages",
        arguments: LoadModel.Action.allCases, [true, false])
    func model(second: LoadModel.Action, hasInFlight: Bool) throws {
        var orders = [[.connect, second]]
        while let order = orders.popLast() {
            var model = try LoadModel(hasInFlight: hasInFlight)
            // An order whose last action can do nothing is the same as the order without it.
            guard try order.allSatisfy({ try model.take($0) }) else { continue }
            if order.count < LoadModel.mostActions {
                orders += LoadModel.Action.allCases.map { order + [$0] }
            }
            try model.settle()
            #expect(model.violations == [], "after \(order.map(\.rawValue))")
            if !model.violations.isEmpty { return }
        }
    }
}

/// One persistent session whose queue is in the store, and its clients one after the other.
struct LoadModel {
    enum Action: String, CaseIterable, Sendable {
        /// A client connects; it takes over if one is connected.
        case connect
        /// The same with clean session 1, which discards the session.
        case connectClean
        /// The connection is lost.
        case lose
        /// The operator empties the queue.
        case drop
        /// The store completes what it was given.
        case commit
        /// The store answers a read.
        case answer
        /// The store cannot read.
        case fail
        /// The session expires.
        case expire
        /// The operator ends the session.
        case end
        case publish
    }

    static let mostActions = 5
    private static let expiryMilliseconds: UInt64 = 60_000

    private let link: ShardLink
    private let publisher: Handle
    private var client: Handle?
    private var isOpen = false
    private var published = 0
    private(set) var violations: [String] = []

    /// With `hasInFlight` the client had left before it acknowledged.
    init(hasInFlight: Bool) throws {
        link = ShardLink { $0.sessionExpiry = .milliseconds(Int64(Self.expiryMilliseconds)) }
        let phone = try link.subscriber("phone", to: "orders", .atLeastOnce)
        publisher = try link.connect("publisher")
        if hasInFlight { try publish() }
        link.lose(phone)
        if !hasInFlight { try publish() }
        try publish()
        _ = try link.take(publisher)
        link.store.isImmediate = false
        link.store.holdsReads = true
    }

    /// Takes an action; false when it can do nothing.
    mutating func take(_ action: Action) throws -> Bool {
        switch action {
        case .connect, .connectClean:
            if let client { try receive(client) }
            client = try link.beginConnect("phone", cleanSession: action == .connectClean)
            isOpen = false
        case .lose:
            guard let client else { return false }
            link.lose(client)
            self.client = nil
        case .drop:
            let before = link.shard.figures.queued
            link.shard.dropQueue(of: "phone", below: nil) { _ in }
            link.turn()
            if link.shard.figures.queued == before { return false }
        case .commit:
            guard !link.store.pending.isEmpty else { return false }
            link.commitAll()
        case .answer, .fail:
            guard link.store.isReading else { return false }
            answer(fails: action == .fail)
        case .expire:
            let sessions = link.shard.figures.sessions
            guard client == nil, sessions > 1 else { return false }
            link.advance(milliseconds: 2 * Self.expiryMilliseconds)
        case .end:
            let sessions = link.shard.figures.sessions
            link.shard.endSession(of: "phone") { _ in }
            link.turn()
            guard link.shard.figures.sessions < sessions else { return false }
        case .publish: try publish()
        }
        try check()
        return true
    }

    private mutating func publish() throws {
        published += 1
        try link.send(
            publisher,
            .publish("orders", "\(published)", qos: .atLeastOnce, .init(number: published)))
    }

    private func answer(fails: Bool) {
        link.store.failsReads = fails
        link.store.holdsReads = false
        link.turn()
        link.store.holdsReads = true
        link.store.failsReads = false
    }

    /// A client without CONNACK waits for a commit or a read that is under way.
    private mutating func check() throws {
        // What a turn has asked for is given to the store in the next one.
        link.turn()
        guard let handle = client else { return }
        try receive(handle)
        guard let client, !isOpen else { return }
        if link.store.pending.isEmpty, !link.store.isReading {
            violations.append("\(client) waits for nothing")
        }
    }

    private mutating func receive(_ handle: Handle) throws {
        for packet in try link.take(handle) {
            switch packet {
            case .connack(let connack):
                if isOpen || connack.returnCode != .accepted { violations.append("\(connack)") }
                isOpen = true
            case .publish(let publish):
                if !isOpen { violations.append("a message before CONNACK") }
                if case .atLeastOnce(let identifier, _) = publish.delivery {
                    try link.send(handle, .puback(identifier))
                }
            default: continue
            }
        }
        if link.closed.contains(handle) { client = nil }
    }

    /// Lets everything come that must come; then the client has CONNACK and all its messages.
    mutating func settle() throws {
        if client == nil { _ = try take(.connect) }
        for _ in 1...10 {
            link.commitAll()
            if link.store.isReading { answer(fails: false) }
            if let client { try receive(client) }
            // A client whose queue cannot be read now comes again.
            if client == nil, link.closeReasons.last == .storeFailure { _ = try take(.connect) }
        }
        guard let client else {
            violations.append("the broker closed the connection")
            return
        }
        guard isOpen else {
            violations.append("no CONNACK")
            return
        }
        try link.send(client, .subscribe("orders", .atLeastOnce))
        link.commitAll()
        try publish()
        link.commitAll()
        let payloads = try link.takeAll(client)
        if payloads != ["\(published)"] { violations.append("it got \(payloads)") }
        let figures = link.shard.figures
        if figures.queued != 0 || figures.inFlight != 0 || link.store.isReading {
            violations.append("\(figures.queued) and \(figures.inFlight) messages are left")
        }
    }
}
