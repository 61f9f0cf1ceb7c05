import Glibc
import Threads

/// The connections to one push service with one key, certificate or account: when they are opened, and
/// what came on them.
///
/// Owned by the sender's thread. Times are milliseconds of the monotonic clock.
final class ServiceConnections {
    enum Event {
        /// `body` and `retryAfter` are as the service sent them.
        case answered(tag: UInt32, ProviderAnswer, body: [UInt8], retryAfter: UInt64?)
        case streamEnded(tag: UInt32, isUnprocessed: Bool)
        /// What was on the connection has no answer; it was useful if it ever gave one.
        case lost(connection: Int, wasUseful: Bool, reason: String)
    }

    private static let pingAfter: UInt64 = 1_800_000
    private static let pingAnswer: UInt64 = 10_000

    private struct Link {
        let connection: ServiceConnection
        /// The last time at which a request was on it.
        var lastUse: UInt64
        /// True once a request was on it.
        var isUsed = false
    }

    /// Its number, as ``ServiceRoutes`` gives it.
    let service: Int
    let address: ServiceEndpoint
    private let inbox: SenderInbox
    private let read: (Int, [UInt8], UInt64?) -> ProviderAnswer
    private var pool: EndpointPool
    private var window = StreamWindow()
    private var links: [Int: Link] = [:]
    private var nextNumber: Int
    private let serviceCount: Int
    private var addresses: [HostAddresses.Address] = []
    private var nextAddress = 0
    private var isResolving = false
    private var events: [Event] = []
    /// When the last answer came; 0 before the first.
    private(set) var lastAnswer: UInt64 = 0
    private(set) var goAways: UInt64 = 0
    private(set) var failed: UInt64 = 0

    /// `read` makes sense of an answer.
    init(
        _ service: Int, _ address: ServiceEndpoint, mostConnections: Int,
        _ inbox: SenderInbox, of serviceCount: Int,
        read: @escaping (_ status: Int, _ body: [UInt8], _ retryAfter: UInt64?) -> ProviderAnswer
    ) {
        self.serviceCount = serviceCount
        self.service = service
        self.address = address
        self.inbox = inbox
        self.read = read
        pool = EndpointPool(most: mostConnections)
        // Numbers of two services differ.
        nextNumber = service
    }

    var openCount: Int { links.values.count { $0.connection.state == .open } }

    /// Why the service cannot be reached; `nil` while it can, or while nothing is known.
    var failure: String? {
        let isOpen = links.values.contains {
            $0.connection.state == .open && $0.connection.hasAnswered
        }
        return isOpen ? nil : pool.failure
    }

    func takeEvents() -> [Event] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    // MARK: Sockets

    /// What the thread is to wait for.
    var waits: [(number: Int, entry: pollfd)] {
        links.map { number, link in
            let connection = link.connection
            return (
                number,
                pollfd(fd: connection.descriptor, events: connection.interest, revents: 0)
            )
        }
    }

    /// A connection's socket is ready.
    func advance(_ number: Int, now: UInt64) {
        guard let link = links[number] else { return }
        attempt(number, now) { () throws(ServiceConnection.Ended) in
            try link.connection.advance(now: now)
        }
        take(number, now)
    }

    func flush(now: UInt64) {
        for (number, link) in links {
            attempt(number, now) { () throws(ServiceConnection.Ended) in
                try link.connection.flush()
            }
        }
    }

    /// Carries something out on a connection, and drops it if that ends it.
    private func attempt(
        _ number: Int, _ now: UInt64, _ body: () throws(ServiceConnection.Ended) -> Void
    ) {
        do throws(ServiceConnection.Ended) {
            try body()
        } catch {
            take(number, now)
            drop(number, error.description, now)
        }
    }

    // MARK: Sending

    /// Connections that take requests now, with the number of them.
    func rooms() -> [(number: Int, room: Int)] {
        var left = window.size - links.values.reduce(0) { $0 + $1.connection.http2.openCount }
        var list: [(number: Int, room: Int)] = []
        for (number, link) in links where left > 0 {
            let room = min(left, link.connection.room)
            guard room > 0 else { continue }
            left -= room
            list.append((number, room))
        }
        return list
    }

    /// Puts a request on a stream; false when that ended the connection.
    func submit(
        _ fields: RequestFields, payload: [UInt8], tag: UInt32, on number: Int, now: UInt64
    ) -> Bool {
        guard let connection = links[number]?.connection else { return false }
        do throws(HTTP2Client.Failure) {
            try connection.http2.submit(fields, payload: payload, tag: tag)
        } catch {
            drop(number, error.description, now)
            return false
        }
        links[number]?.lastUse = now
        links[number]?.isUsed = true
        return true
    }

    /// Opens a connection, if requests wait and there is reason to.
    func connect(_ tls: ServiceTLS, waiting: Bool, now: UInt64) {
        let usable = links.values.count { !$0.connection.isDraining }
        // A slow service gets no further connections: its streams are not what lacks.
        let underWay = links.values.reduce(0) { $0 + $1.connection.http2.openCount }
        let lacks = waiting && (usable == 0 || underWay < window.size)
        guard pool.opens(connections: usable, waiting: lacks, at: now) else { return }
        open(tls, now)
    }

    private func open(_ tls: ServiceTLS, _ now: UInt64) {
        guard nextAddress < addresses.count else { return resolve(tls, now) }
        do throws(ServiceConnection.Ended) {
            let connection = try ServiceConnection(
                to: addresses[nextAddress], host: address.host, tls, now: now)
            links[nextNumber] = Link(connection: connection, lastUse: now)
            nextNumber += serviceCount
        } catch {
            connectFailed(error.description, now)
        }
    }

    /// Asks for the addresses of the service, on a thread of its own unless they are numbers.
    private func resolve(_ tls: ServiceTLS, _ now: UInt64) {
        let numeric = HostAddresses(address, isNumericOnly: true)
        guard numeric.failure != nil else {
            addresses = numeric.addresses
            nextAddress = 0
            return open(tls, now)
        }
        guard !isResolving else { return }
        isResolving = true
        let (inbox, address, service) = (inbox, address, service)
        do throws(ThreadFailure) {
            try WorkerThread.start(name: "hermes-resolve") {
                let found = HostAddresses(address)
                inbox.change { $0.addresses.append((service, found)) }
            }
        } catch {
            isResolving = false
            connectFailed(error.description, now)
        }
    }

    func resolved(_ found: HostAddresses, now: UInt64) {
        isResolving = false
        addresses = found.addresses
        nextAddress = 0
        if let failure = found.failure { connectFailed(failure, now) }
    }

    /// Notes that an address was of no use; the next one is tried before a pause.
    private func connectFailed(_ reason: String, wasOpen: Bool = false, _ now: UInt64) {
        failed += 1
        nextAddress += 1
        pool.failed(reason, wasOpen: wasOpen, random: .random(in: 0...1), at: now)
    }

    // MARK: What came

    private func take(_ number: Int, _ now: UInt64) {
        guard let connection = links[number]?.connection else { return }
        for event in connection.http2.takeEvents() {
            switch event {
            case .answered(let tag, let status, let body, let retryAfter):
                let answer = read(status, body, retryAfter)
                // "Shutdown" as the first answer is a goodbye, and no success.
                if answer.meaning != .closing, !connection.hasAnswered {
                    connection.hasAnswered = true
                    pool.succeeded()
                }
                if answer.meaning == .closing { connection.hasSaidGoodbye = true }
                lastAnswer = now
                if answer.status != 403 { connection.isProven = true }
                if answer.endsConnection { connection.isDraining = true }
                events.append(
                    .answered(tag: tag, answer, body: body, retryAfter: retryAfter))
            case .ended(let tag, let isUnprocessed):
                events.append(.streamEnded(tag: tag, isUnprocessed: isUnprocessed))
            case .goAway(let reason):
                goAways += 1
                connection.goodbye = reason.isEmpty ? "no reason" : reason
            }
        }
        let isOver = connection.isDraining || connection.http2.isGoingAway
        guard isOver, connection.http2.openCount == 0 else { return }
        let reason = connection.goodbye.map { "the service said goodbye (\($0))" }
        drop(number, reason ?? "the service ended the connection", now)
    }

    /// Notes how long an answer took.
    func answered(after time: UInt64, now: UInt64) { window.answered(after: time, at: now) }

    /// Ends a connection.
    private func drop(_ number: Int, _ reason: String, _ now: UInt64) {
        guard let link = links.removeValue(forKey: number) else { return }
        let connection = link.connection
        events.append(
            .lost(connection: number, wasUseful: connection.hasAnswered, reason: reason))
        guard connection.state == .open else { return connectFailed(reason, now) }
        connection.sayGoodbye()
        // One that worked is replaced at once, at the same address. One that was open and never gave
        // an answer was none: so ends a refused certificate (TLS 1.3), and a service that turns away.
        guard connection.hasAnswered || !connection.hasSaidGoodbye else {
            return pool.saidGoodbye(reason, random: .random(in: 0...1), at: now)
        }
        if !connection.hasAnswered, link.isUsed || connection.goodbye != nil || reason != Self.idle
        {
            connectFailed(reason, wasOpen: true, now)
        }
    }

    private static let idle = "idle"

    /// A notification has had no answer for too long: its stream ends, or its connection if that is
    /// silent.
    func overdue(_ tag: UInt32, on number: Int, silence: UInt64, now: UInt64) {
        guard let connection = links[number]?.connection else { return }
        if now - connection.lastInput >= silence {
            drop(number, "no answer", now)
        } else {
            connection.http2.cancel(tag)
            take(number, now)
        }
    }

    // MARK: Times

    func checkTimes(now: UInt64) {
        for (number, link) in links { check(number, link, now) }
    }

    private func check(_ number: Int, _ link: Link, _ now: UInt64) {
        let connection = link.connection
        if connection.state != .open {
            if now >= connection.openingDeadline { drop(number, "no connection within 10 s", now) }
            return
        }
        if let pinged = connection.pingedAt {
            if now - pinged >= Self.pingAnswer { drop(number, "no answer to a PING", now) }
            return
        }
        guard connection.http2.openCount == 0 else { return }
        if links.count > 1, now - link.lastUse >= EndpointPool.idle {
            drop(number, Self.idle, now)
        } else if now - connection.lastInput >= Self.pingAfter {
            attempt(number, now) { () throws(ServiceConnection.Ended) in
                try connection.ping(now: now)
            }
        }
    }

    /// Since when a connection is being opened while none is open; `nil` otherwise.
    var openingSince: UInt64? {
        guard openCount == 0 else { return nil }
        return links.values.reduce(nil) { first, link in
            Swift.min(first ?? link.connection.openedAt, link.connection.openedAt)
        }
    }

    func sayGoodbye() {
        for link in links.values { link.connection.sayGoodbye() }
        links = [:]
    }
}
