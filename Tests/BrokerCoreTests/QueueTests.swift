import BrokerCore
import BrokerFeatures
import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Synchronization
import Testing

/// The operator's view of queues, and the removal of messages.
@Suite("Queues for the operator")
struct QueueTests {
    @Test("an offline client's queue shows messages in flight, released and waiting")
    func absentClient() throws {
        let link = ShardLink({ $0.maxInFlight = 3 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a/#", .exactlyOnce))
        try publish(["a/0", "a/1", "a/2"], .exactlyOnce, to: link)
        _ = try link.take(phone)
        try link.send(phone, .pubrec(2))
        link.lose(phone)
        try publish(["a/3", "a/4"], .atLeastOnce, to: link)

        let page = try link.page(of: "phone")
        #expect(
            page == [
                "0 in_flight a/0 2", "1 released - 2", "2 in_flight a/2 2", "3 waiting a/3 1",
                "4 waiting a/4 1",
            ])
    }

    @Test("a connected client's queue is the window in memory and behind it the store's")
    func connectedClient() throws {
        let link = ShardLink({ $0.maxInFlight = 2 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        // Far more than the window in memory.
        try publish(Array(repeating: "a", count: 300), .atLeastOnce, to: link)
        let page = try link.page(of: "phone", limit: 1_000)
        #expect(page.count == 300)
        #expect(page.prefix(3) == ["0 in_flight a 1", "1 in_flight a 1", "2 waiting a 1"])
        #expect(page.last == "299 waiting a 1")
        try link.send(phone, .puback(1))
        #expect(try link.page(of: "phone", limit: 2) == ["1 in_flight a 1", "2 in_flight a 1"])
    }

    @Test("a clean session's queue is shown from memory")
    func cleanSession() throws {
        let link = ShardLink({ $0.maxInFlight = 1 })
        let phone = try link.connect("phone")
        try link.send(phone, .subscribe("a", .atLeastOnce))
        try publish(["a", "a"], .atLeastOnce, to: link)
        #expect(try link.page(of: "phone") == ["0 in_flight a 1", "1 waiting a 1"])
    }

    @Test("pages follow each other without a gap", arguments: [1, 2, 3, 7, 100])
    func pages(limit: Int) throws {
        let link = ShardLink({ $0.maxInFlight = 3 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        try publish(Array(repeating: "a", count: 100), .atLeastOnce, to: link)
        // Holes at the beginning of the messages in flight, and among them.
        try link.send(phone, .puback(2), .puback(1))
        let whole = try link.page(of: "phone", limit: 1_000)
        #expect(whole.count == 98)
        var read: [String] = []
        var from: UInt64? = 0
        while let position = from {
            let page = try #require(link.ask("phone", from: position, limit: limit))
            #expect(page.messages.count <= limit)
            read += page.messages.map(\.line)
            from = page.next.flatMap { UInt64($0) }
            #expect(page.next == nil || !page.messages.isEmpty)
        }
        #expect(read == whole)
    }

    @Test("an unknown client has no queue to show or to drop")
    func unknown() throws {
        let link = ShardLink()
        let answers = Answers()
        link.shard.queue(QueueQuery(clientID: "x", limit: 1)) { answers.add($0) }
        link.shard.dropQueue(of: "x", below: nil) { answers.add($0) }
        #expect(answers.all == ["unknown client", "unknown client"])
    }

    @Test("dropping removes waiting messages; those in flight are re-sent")
    func drop() throws {
        let link = ShardLink({ $0.maxInFlight = 2 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        try publish(["a", "a"], .atLeastOnce, to: link)
        _ = try link.take(phone)
        link.lose(phone)
        try publish(["a", "a", "a"], .atLeastOnce, to: link)
        #expect(try link.drop("phone") == 3)
        #expect(try link.page(of: "phone") == ["0 in_flight a 1", "1 in_flight a 1"])
        #expect(link.store.positions(of: 1) == [0, 1])
        #expect(link.shard.counters.dropped[.byOperator] == 3)
        let figures = link.shard.figures
        #expect((figures.queued, figures.queuedBytes, figures.inFlight) == (0, 0, 2))
        // A restart must know where waiting messages begin.
        #expect(link.store.records.contains(.horizon(session: 1, position: 5)))

        let again = try reconnect(link)
        #expect(
            try link.take(again).dropFirst() == [
                .publish("a", "0", qos: .atLeastOnce, 1, isDuplicate: true),
                .publish("a", "1", qos: .atLeastOnce, 2, isDuplicate: true),
            ])
        try link.send(again, .puback(1), .puback(2))
        try publish(["a"], .atLeastOnce, to: link)
        #expect(try link.take(again) == [.publish("a", "0", qos: .atLeastOnce, 6)])
    }

    @Test("dropping empties the window in memory and the rest in the store")
    func dropConnected() throws {
        let link = ShardLink({ $0.maxInFlight = 2 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        try publish(Array(repeating: "a", count: 200), .atLeastOnce, to: link)
        _ = try link.take(phone)
        #expect(try link.drop("phone") == 198)
        #expect(link.store.positions(of: 1) == [0, 1])
        #expect(link.shard.figures.queuedBytes == 0)
        try link.send(phone, .puback(1), .puback(2))
        #expect(try link.take(phone) == [])
        try publish(["a"], .atLeastOnce, to: link)
        #expect(try link.take(phone) == [.publish("a", "0", qos: .atLeastOnce, 201)])
    }

    @Test("messages dropped while they are loaded are not sent")
    func dropWhileLoading() throws {
        let link = ShardLink({ $0.maxInFlight = 20 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        link.lose(phone)
        try publish(["a", "a", "a"], .atLeastOnce, to: link)
        link.store.holdsReads = true
        let again = try reconnect(link)
        #expect(try link.drop("phone") == 3)
        link.store.holdsReads = false
        link.turn()
        let packets = try link.take(again)
        #expect(packets == [.connack(.accepted(sessionPresent: true))])
        #expect(link.shard.figures.inFlight == 0)
        try publish(["a"], .atLeastOnce, to: link)
        #expect(try link.take(again) == [.publish("a", "0", qos: .atLeastOnce, 4)])
    }

    @Test("a message that a full queue gives up while it comes from the store is not sent")
    func fullWhileLoading() throws {
        let link = ShardLink({
            $0.queueBytes = 400
            $0.maxInFlight = 20
        })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        link.lose(phone)
        let text = String(repeating: "x", count: 150)
        let publisher = try link.connect("publisher")
        for number in 1...2 {
            try link.send(publisher, .publish("a", "\(number)\(text)", qos: .atLeastOnce, 1))
        }
        link.store.holdsReads = true
        let again = try reconnect(link)
        try link.send(publisher, .publish("a", "3\(text)", qos: .atLeastOnce, 1))
        #expect(link.shard.counters.dropped[.queueFull] == 1)
        link.store.holdsReads = false
        link.turn()
        #expect(
            try link.take(again).dropFirst() == [
                .publish("a", "2\(text)", qos: .atLeastOnce, 2),
                .publish("a", "3\(text)", qos: .atLeastOnce, 3),
            ])
    }

    @Test("a drop is answered once it is stored")
    func dropIsStored() throws {
        let link = ShardLink(isImmediate: false)
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        link.lose(phone)
        try publish(["a"], .atLeastOnce, to: link)
        link.store.completeAll()
        link.turn()
        let answers = Answers()
        link.shard.dropQueue(of: "phone", below: nil) { answers.add($0) }
        link.turn()
        #expect(answers.all == [])
        link.store.completeAll()
        link.turn()
        #expect(answers.all == ["dropped 1, bound 1, more false"])
    }

    @Test("a long queue is dropped in parts, without messages that arrive meanwhile")
    func dropInParts() throws {
        let link = ShardLink({ $0.queueMessages = 20_000 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        link.lose(phone)
        try publish(Array(repeating: "a", count: 10_500), .atLeastOnce, to: link)
        let answers = Answers()
        link.shard.dropQueue(of: "phone", below: nil) { answers.add($0) }
        link.turn()
        try publish(["a"], .atLeastOnce, to: link)
        link.shard.dropQueue(of: "phone", below: 10_500) { answers.add($0) }
        link.turn()
        #expect(
            answers.all == [
                "dropped 10000, bound 10500, more true",
                "dropped 500, bound 10500, more false",
            ])
        #expect(try link.page(of: "phone") == ["10500 waiting a 1"])
    }

    @Test("a shard that stops answers requests that wait for the store")
    func stopping() throws {
        let link = ShardLink()
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        link.lose(phone)
        try publish(["a"], .atLeastOnce, to: link)
        link.store.holdsReads = true
        let answers = Answers()
        link.shard.queue(QueueQuery(clientID: "phone", limit: 1)) { answers.add($0) }
        link.turn()
        #expect(answers.all == [])
        link.shard.abandonReplies()
        #expect(answers.all == ["stopping"])
    }

    private func publish(_ topics: [String], _ qos: QoS, to link: ShardLink) throws {
        let publisher = try link.connect("publisher")
        for (number, topic) in topics.enumerated() {
            let identifier = try #require(PacketIdentifier(UInt16(number + 1)))
            try link.send(publisher, .publish(topic, "\(number)", qos: qos, identifier))
            if qos == .exactlyOnce { try link.send(publisher, .pubrel(identifier)) }
        }
    }

    private func reconnect(_ link: ShardLink) throws -> Handle {
        let handle = link.open()
        var connect = PacketContent.Connect(clientID: "phone")
        connect.cleanSession = false
        try link.send(handle, .connect(connect))
        return handle
    }
}

/// The answers, from any thread.
private final class Answers: Sendable {
    private let texts = Mutex<[String]>([])
    var all: [String] { texts.withLock { $0 } }

    func add(_ answer: BrokerAnswer<QueuePage?>) {
        add(answer.map { $0 == nil ? "unknown client" : "page" })
    }

    func add(_ answer: BrokerAnswer<QueueDrop?>) {
        add(
            answer.map { drop in
                drop.map { "dropped \($0.dropped), bound \($0.bound), more \($0.hasMore)" }
                    ?? "unknown client"
            })
    }

    private func add(_ answer: BrokerAnswer<String>) {
        let text: String
        switch answer {
        case .success(let success): text = success
        case .failure(let error): text = "\(error)"
        }
        texts.withLock { $0.append(text) }
    }
}

extension ShardLink {
    fileprivate func ask(_ client: String, from: UInt64 = 0, limit: Int = 100) -> Page? {
        let box = Box(Mutex<Page?>(nil))
        shard.queue(QueueQuery(clientID: client, limit: limit, from: from)) { answer in
            guard case .success(let answered?) = answer else { return }
            box.value.withLock { value in
                value = Page(
                    messages: answered.messages.map { message in
                        Page.Message(
                            line: "\(message.position) \(message.state.rawValue) "
                                + "\(message.topic ?? "-") \(message.qos)")
                    }, next: answered.next)
            }
        }
        turn()
        return box.value.withLock { $0 }
    }

    fileprivate func page(of client: String, limit: Int = 100) throws -> [String] {
        try #require(ask(client, limit: limit)).messages.map(\.line)
    }

    fileprivate func drop(_ client: String) throws -> Int {
        let box = Box(Mutex<Int?>(nil))
        shard.dropQueue(of: client, below: nil) { answer in
            guard case .success(let drop?) = answer, !drop.hasMore else { return }
            box.value.withLock { $0 = drop.dropped }
        }
        turn()
        return try #require(box.value.withLock { $0 })
    }
}

private struct Page: Sendable {
    struct Message: Sendable { var line: String }
    var messages: [Message]
    var next: String?
}

private final class Box<Value: Sendable>: Sendable {
    let value: Mutex<Value>
    init(_ value: consuming Mutex<Value>) { self.value = value }
}
