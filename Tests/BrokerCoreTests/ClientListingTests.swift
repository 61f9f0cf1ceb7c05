import Addresses
import BrokerAPI
import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import Structures
import Synchronization
import Testing

/// `GET /v1/clients`: pages in the order of identifiers, while sessions begin and end.
@Suite("Lists of clients")
struct ClientListingTests {
    /// One page, and the number of steps it took.
    private func page(
        _ link: ShardLink, _ query: ClientQuery,
        duringEachStep change: (Int) throws -> Void = { _ in }
    ) throws -> (page: ClientPage, steps: Int) {
        let answer = Mutex<BrokerAnswer<ClientPage>?>(nil)
        link.shard.listClients(query) { page in answer.withLock { $0 = page } }
        #expect(link.shard.nextDeadline == link.shard.now, "the loop goes on with it at once")
        for step in 1...1_000 {
            link.shard.continueListings(
                address: { "address \($0.index)" }, peer: { _ in .unknown })
            if let page = answer.withLock({ $0 }) { return (try page.get(), step) }
            try change(step)
        }
        throw NoAnswer()
    }

    private struct NoAnswer: Error {}

    private func identifiers(_ page: ClientPage) -> [String] { page.clients.map(\.clientID) }

    /// All pages, each client once.
    private func all(
        _ link: ShardLink, _ query: ClientQuery, between change: (Int) throws -> Void = { _ in }
    ) throws -> [String] {
        var query = query
        var found: [String] = []
        for number in 0..<1_000 {
            let page = try page(link, query).page
            found += identifiers(page)
            guard let next = page.next else { return found }
            #expect(page.clients.count == query.limit, "only the last page is short")
            query.cursor = next
            try change(number)
        }
        throw NoAnswer()
    }

    @Test(
        "pages are in the order of the identifiers' bytes, and the last has no next",
        arguments: 1...8)
    func order(limit: Int) throws {
        let link = ShardLink()
        let names = ["phone-10", "a", "phone-1", "ä", "B", "phone-100", "z"]
        for name in names { _ = try link.connect(name) }
        #expect(
            try all(link, ClientQuery(limit: limit))
                == ["B", "a", "phone-1", "phone-10", "phone-100", "z", "ä"])
        #expect(
            try all(link, ClientQuery(prefix: "phone-1", limit: limit))
                == ["phone-1", "phone-10", "phone-100"])
    }

    @Test("lists can be filtered: connected or offline, prefix, user name")
    func filters() throws {
        let link = ShardLink()
        for name in ["a", "b", "c"] {
            let handle = try link.connect(name, cleanSession: false) {
                $0.userName = Array((name == "c" ? "carl" : "ann").utf8)
            }
            if name == "b" { link.lose(handle) }
        }
        #expect(try all(link, ClientQuery(connected: false)) == ["b"])
        #expect(try all(link, ClientQuery(connected: true)) == ["a", "c"])
        #expect(try all(link, ClientQuery(userName: "ann")) == ["a", "b"])
        #expect(try all(link, ClientQuery(userName: "")) == [])
    }

    @Test("clients are sorted by what stands out, and pages continue the order")
    func sorted() throws {
        let link = ShardLink()
        for (name, count) in [("a", 2), ("b", 5), ("c", 0), ("d", 5)] {
            let handle = try link.connect(name, cleanSession: false)
            try link.send(handle, .subscribe("to/\(name)", .atLeastOnce))
            for number in 0..<count { try link.send(handle, .subscribe("\(number)", .atMostOnce)) }
            link.lose(handle)
            publish(link, "to/\(name)", count)
        }
        for limit in 1...5 {
            for order in [ClientQuery.Order.subscriptions, .queued, .queuedBytes] {
                let found = try all(link, ClientQuery(order: order, limit: limit))
                #expect(found == ["b", "d", "a", "c"], "by \(order.rawValue), \(limit) a page")
            }
        }
        #expect(try all(link, ClientQuery(order: .dropped)) == ["a", "b", "c", "d"])
    }

    private func publish(_ link: ShardLink, _ topic: String, _ count: Int) {
        for _ in 0..<count {
            link.shard.publish(
                Publication(
                    topic: Array(topic.utf8), payload: [1], qos: .atLeastOnce, retain: false)
            ) { _ in }
            link.turn()
        }
    }

    @Test("clients are filtered by network, version and time")
    func moreFilters() throws {
        let link = ShardLink()
        let near = try link.connect("near")
        _ = try link.connect("far")
        let answer = Mutex<BrokerAnswer<ClientPage>?>(nil)
        link.shard.listClients(ClientQuery(address: "10.1.0.0/16")) { page in
            answer.withLock { $0 = page }
        }
        link.shard.continueListings(
            address: { "\($0.index)" },
            peer: { IPAddress(ipv4: $0 == near ? 0x0A01_0203 : 0x0A02_0203, port: 1) })
        let found = answer.withLock { try? $0?.get() }
        #expect(found?.clients.map(\.clientID) == ["near"])
        #expect(try all(link, ClientQuery(protocolVersion: "3.1")) == [])
        let now = link.shard.wallClockMs
        #expect(try all(link, ClientQuery(beforeMs: now + 1)) == ["far", "near"])
        #expect(try all(link, ClientQuery(beforeMs: now)) == [])
        #expect(try all(link, ClientQuery(fromMs: now)) == ["far", "near"])
        #expect(try all(link, ClientQuery(fromMs: now + 1)) == [])
    }

    @Test("a client that stays is listed once, however others and itself come and go between pages")
    func stable() throws {
        let link = ShardLink()
        let stays = (10..<40).map { "s\($0)" }
        var handles: [String: Handle] = [:]
        for name in stays.reversed() { handles[name] = try link.connect(name) }
        var early = try (0..<5).map { try link.connect("early\($0)") }
        let found = try all(link, ClientQuery(limit: 4)) { number in
            // Frees places for later sessions.
            if let gone = early.popLast() { link.lose(gone) }
            _ = try link.connect("a-new-\(number)")
            _ = try link.connect("t-new-\(number)")
            // Returns at another place in the table.
            let name = stays[(number * 7) % stays.count]
            if let handle = handles[name] { link.lose(handle) }
            handles[name] = try link.connect(name)
        }
        #expect(found.filter { $0.hasPrefix("s") } == stays)
        #expect(found == found.sorted())
    }

    @Test("more sessions than a turn looks at take several, and the page is whole")
    func slices() throws {
        let link = ShardLink(isDurable: false)
        let count = 20_000
        for number in 0..<count { _ = try link.connect("c\(100_000 + (number * 6_667) % count)") }
        var lost = false
        let (page, steps) = try page(link, ClientQuery(limit: 3)) { step in
            guard !lost else { return }
            lost = true
            // Visited already, and ended before the page is complete.
            let isGone = link.shard.disconnect("c100001")
            #expect(isGone)
            link.turn()
        }
        #expect(steps > 1)
        #expect(lost)
        #expect(identifiers(page) == ["c100000", "c100002"])
        let next = try self.page(link, ClientQuery(limit: 2, cursor: page.next)).page
        #expect(identifiers(next) == ["c100003", "c100004"])
    }

    @Test("identifiers too long for a URL have their place, and every page its next")
    func longIdentifiers() throws {
        let link = ShardLink({ $0.maxClientIDBytes = 65_535 })
        let long = String(repeating: "x", count: 60_000)
        var names = ["a", long, long + "1", long + "2", String(repeating: "x", count: 256), "y"]
        for name in names { _ = try link.connect(name) }
        var query = ClientQuery(limit: 1)
        var found: [String] = []
        repeat {
            let page = try page(link, query).page
            found += identifiers(page)
            query.cursor = page.next
            #expect((page.next ?? "").utf8.count <= 2 * ListCursor.maximumKeyBytes)
        } while query.cursor != nil
        #expect(found.sorted() == names.sorted())
        names.sort()
        #expect(found.first == "a" && found.last == "y" && found[1].utf8.count == 256)
    }

    @Test("a waiting list gets an error when the shard stops")
    func stop() throws {
        let link = ShardLink()
        let answer = Mutex<BrokerAnswer<ClientPage>?>(nil)
        link.shard.listClients(ClientQuery()) { page in answer.withLock { $0 = page } }
        link.shard.abandonReplies()
        #expect(answer.withLock { $0 } == .failure(.stopping))
    }

    @Test("a page's cursor leads to the next page")
    func cursors() {
        for key in [[], [0], [0xFF, 0x00, 0x7A], [UInt8](repeating: 7, count: 512)] as [[UInt8]] {
            #expect(ListCursor(text: ListCursor(key: key).text)?.key == key)
        }
        for text in ["a", "AB", "0x", "g0", " 0", "ä", String(repeating: "00", count: 513)] {
            #expect(ListCursor(text: text) == nil, "\(text)")
        }
    }
}
