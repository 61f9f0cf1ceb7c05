import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Bytes of sessions")
struct SessionBytesTests {
    private static func name(_ text: String, _ count: Int) -> String {
        text + String(repeating: "x", count: count - text.utf8.count)
    }

    private static func connect(
        _ link: ShardLink, _ identifier: String, cleanSession: Bool = false, user: String? = nil,
        will: Int? = nil
    ) throws -> (handle: Handle, code: Connack.ReturnCode?) {
        var connect = PacketContent.Connect(clientID: identifier)
        connect.cleanSession = cleanSession
        connect.userName = user.map { Array($0.utf8) }
        connect.will = will.map {
            PacketContent.Will(topic: "w", message: [UInt8](repeating: 7, count: $0))
        }
        let handle = link.open()
        try link.send(handle, .connect(connect))
        guard case .connack(let connack)? = try link.take(handle).first else {
            return (handle, nil)
        }
        return (handle, connack.returnCode)
    }

    private static func codes(_ link: ShardLink, _ client: Handle, _ filters: String...) throws
        -> [UInt8]
    {
        try link.send(client, .subscribe(1, filters.map { PacketContent.Request($0, .atMostOnce) }))
        return try link.take(client).flatMap { packet -> [UInt8] in
            if case .suback(_, let codes) = packet { codes } else { [] }
        }
    }

    // MARK: Names

    @Test("limits.max_client_id: one byte more gets 0x02 [MQTT-3.1.3-9]")
    func longIdentifier() throws {
        let link = ShardLink({ $0.maxClientIDBytes = 100 })
        #expect(try Self.connect(link, Self.name("a", 100)).code == .accepted)
        let (refused, code) = try Self.connect(link, Self.name("b", 101))
        #expect(code == .identifierRejected)
        #expect(link.closed == [refused])
        #expect(link.closeReasons == [.clientIDTooLong])
        #expect(link.shard.counters.limits[.maxClientID] == 1)
    }

    @Test("limits.max_user_name: one byte more gets 0x04")
    func longUserName() throws {
        let link = ShardLink({ $0.maxUserNameBytes = 100 })
        #expect(try Self.connect(link, "a", user: Self.name("u", 100)).code == .accepted)
        #expect(
            try Self.connect(link, "b", user: Self.name("u", 101)).code
                == .badUserNameOrPassword)
        #expect(link.shard.counters.limits[.maxUserName] == 1)
    }

    @Test("a client whose session has a longer name already keeps it, until it ends")
    func longNameOfStored() throws {
        let link = ShardLink()
        let (identifier, user) = (Self.name("i", 500), Self.name("u", 500))
        link.lose(try Self.connect(link, identifier, user: user).handle)
        link.shard.limits.maxClientIDBytes = 100
        link.shard.limits.maxUserNameBytes = 100
        link.lose(try Self.connect(link, identifier, user: user).handle)
        #expect(try Self.connect(link, identifier, user: "other").code == .notAuthorized)
        let last = try Self.connect(link, identifier, cleanSession: true, user: user)
        #expect(last.code == .accepted)
        link.lose(last.handle)
        #expect(try Self.connect(link, identifier, user: user).code == .identifierRejected)
    }

    // MARK: All sessions

    @Test("limits.session_bytes: new persistent sessions get 0x03; clean and known ones get in")
    func allSessions() throws {
        let link = ShardLink({ $0.sessionBytes = .bytes(4_096) })
        var accepted: [Handle] = []
        while let next = Optional(try Self.connect(link, "\(accepted.count)")),
            next.code == .accepted
        {
            accepted.append(next.handle)
        }
        // 256 bytes and a name, rounded up to 64.
        #expect(accepted.count == 4_096 / 320)
        #expect(link.closeReasons == [.noRoom(.sessionBytes)])
        #expect(link.shard.counters.limits[.sessionBytes] == 1)
        link.lose(accepted[0])
        #expect(try Self.connect(link, "0").code == .accepted)
        // A clean session is no way around: its client asks again for a persistent one.
        let clean = try Self.connect(link, "clean", cleanSession: true)
        #expect(clean.code == .accepted)
        #expect(try Self.connect(link, "clean").code == .serverUnavailable)
        #expect(!link.closed.contains(clean.handle))

        // Room again.
        #expect(try Self.connect(link, "1", cleanSession: true).code == .accepted)
        link.lose(clean.handle)
        for number in 2..<6 { link.lose(accepted[number]) }
        #expect(link.shard.sessions.bytes.total > 0)
        #expect(try Self.connect(link, "2", cleanSession: true).code == .accepted)
        #expect(try Self.connect(link, "3", cleanSession: true).code == .accepted)
    }

    @Test("beyond it a further subscription gets 0x80; a clean session always has 4 KiB")
    func subscriptionsBeyond() throws {
        let link = ShardLink({ $0.sessionBytes = .bytes(40_960) })
        let known = try Self.connect(link, "known").handle
        for number in 0..<7 {
            let client = try Self.connect(link, "\(number)").handle
            #expect(try Self.codes(link, client, Self.name("\(number)", 4_800)) == [0])
        }
        #expect(try Self.codes(link, known, "a/b", Self.name("long", 6_000)) == [0, 0x80])
        // The same again is no further one.
        #expect(try Self.codes(link, known, "a/b") == [0])
        #expect(link.shard.counters.limits[.sessionBytes] == 1)
        link.shard.limits.sessionBytes = .bytes(20_480)
        #expect(try Self.codes(link, known, "a/c") == [0x80])
        let clean = try Self.connect(link, "clean", cleanSession: true).handle
        #expect(
            try Self.codes(link, clean, Self.name("a", 3_000), Self.name("b", 3_000))
                == [0, 0x80])
        try link.send(known, .unsubscribe(2, [Array("a/b".utf8)]))
        #expect(try Self.codes(link, known, "a/c") == [0x80])
    }

    @Test("limits.subscription_bytes bounds one session, as does a quarter of session_bytes")
    func ofOneSession() throws {
        let link = ShardLink({ $0.subscriptionBytes = 2_048 })
        let client = try Self.connect(link, "client").handle
        // 32 bytes, 64 for each level, and its own.
        #expect(try Self.codes(link, client, Self.name("a", 928)) == [0])
        let next = [Self.name("b", 929), Self.name("b", 928)]
        #expect(try Self.codes(link, client, next[0], next[1]) == [0x80, 0])
        #expect(link.shard.counters.limits[.subscriptionBytes] == 1)
        #expect(try Self.codes(link, client, "c") == [0x80])
        link.shard.limits.sessionBytes = .bytes(6_000)
        link.shard.limits.subscriptionBytes = 4_096
        try link.send(client, .unsubscribe(2, [Array(Self.name("a", 928).utf8)]))
        _ = try link.take(client)
        #expect(try Self.codes(link, client, "c/d/e", "f/g", "h/i") == [0, 0, 0x80])
    }

    @Test("limits.session_bytes_per_user leaves others their room; unproven names have no share")
    func ofOneUser() throws {
        let link = ShardLink({ $0.sessionBytes = .bytes(8_192) }, verifiesPasswords: true)
        let answers = try (0..<20).map { try Self.connect(link, "a\($0)", user: "anna").code }
        #expect(answers.filter { $0 == .accepted }.count == 4_096 / 320)
        #expect(link.closeReasons.last == .noRoom(.sessionBytesPerUser))
        #expect(try Self.connect(link, "b", user: "ben").code == .accepted)
        link.shard.limits.sessionBytesPerUser = .off
        #expect(try Self.connect(link, "a19", user: "anna").code == .accepted)
    }

    @Test("a will counts; beyond the limit only one of up to 1 KiB is accepted")
    func wills() throws {
        let link = ShardLink({ $0.sessionBytes = .bytes(8_192) })
        let first = try Self.connect(link, "a", cleanSession: true, will: 7_000)
        #expect(first.code == .accepted)
        #expect(
            try Self.connect(link, "b", cleanSession: true, will: 7_000).code
                == .serverUnavailable)
        #expect(try Self.connect(link, "b", cleanSession: true, will: 900).code == .accepted)
        link.lose(first.handle)
        #expect(try Self.connect(link, "c", cleanSession: true, will: 6_000).code == .accepted)
    }

    @Test("while nothing can be freed, nothing is added that outlives its connection")
    func nothingNew() throws {
        let link = ShardLink()
        let known = try Self.connect(link, "known").handle
        #expect(try Self.codes(link, known, "a") == [0])
        try link.send(known, .publish("kept", "1", retain: true))
        link.shard.keepsNothingNew = true
        #expect(try Self.connect(link, "new").code == .serverUnavailable)
        #expect(link.closeReasons == [.noRoom(.memory)])
        #expect(try Self.codes(link, known, "a", "b") == [0, 0x80])
        let clean = try Self.connect(link, "clean", cleanSession: true, will: 100).handle
        try link.send(
            clean, .publish("new", "1", retain: true), .publish("kept", "2", retain: true))
        #expect(link.shard.retained.count == 1)
        try link.send(clean, .publish("kept", "22", retain: true))
        #expect(link.shard.retained.count == 0)
        #expect(try Self.codes(link, clean, "a") == [0])
        link.lose(known)
        #expect(try Self.connect(link, "known").code == .accepted)
        link.shard.keepsNothingNew = false
        #expect(try Self.connect(link, "new").code == .accepted)
    }

    // MARK: Counting

    /// The bytes of all sessions, counted anew.
    private static func recount(_ shard: borrowing Shard) -> Int {
        var total = 0
        for index in 0..<shard.sessions.endIndex where shard.sessions[index].generation != 0 {
            let session = shard.sessions[index]
            total += SessionBytes.of(session)
            for (filter, _) in shard.subscriptions.filters(of: session.subscriptions) {
                total += filter.withUnsafeBytes {
                    Int(SessionBytes.units(ofFilter: $0, levels: TopicLevels.count($0)))
                        * SessionBytes.unit
                }
            }
            if session.isPersistent, session.connection == nil {
                total += SessionBytes.of(session.inbound)
            }
        }
        shard.connections.forEach { _, connection in
            if let will = connection.will { total += SessionBytes.of(will: will) }
        }
        return total
    }

    @Test("whatever clients do, what is counted is what there is", arguments: UInt64(1)...20)
    func counted(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let link = ShardLink(
            {
                $0.sessionExpiry = .seconds(30)
                $0.sessionBytes = .bytes(30_000)
            }, verifiesPasswords: seed % 2 == 0)
        var connected: [Handle] = []
        for step in 0..<400 {
            switch Int.random(in: 0..<8, using: &generator) {
            case 0, 1:
                let number = Int.random(in: 0..<12, using: &generator)
                let client = try Self.connect(
                    link, Self.name("\(number)", 10 + number * 9),
                    cleanSession: Int.random(in: 0..<3, using: &generator) == 0,
                    user: "user\(number % 3)",
                    will: [nil, 10, 3_000].randomElement(using: &generator) ?? nil)
                connected.append(client.handle)
            case 2: if let client = connected.randomElement(using: &generator) { link.lose(client) }
            case 3:
                guard let client = connected.randomElement(using: &generator) else { break }
                try link.send(client, .disconnect)
            case 4, 5:
                guard let client = connected.randomElement(using: &generator) else { break }
                let filter = Self.filter(&generator)
                try link.send(client, .subscribe(filter, .atLeastOnce))
            case 6:
                guard let client = connected.randomElement(using: &generator) else { break }
                if Bool.random(using: &generator) {
                    try link.send(client, .unsubscribe(2, [Array(Self.filter(&generator).utf8)]))
                } else {
                    let identifier = UInt16.random(in: 1...40, using: &generator)
                    try link.send(
                        client,
                        .publish("q", "2", qos: .exactlyOnce, try #require(.init(identifier))))
                }
            default: link.advance(milliseconds: 3_000)
            }
            connected.removeAll { link.closed.contains($0) }
            #expect(
                link.shard.sessions.bytes.total == Self.recount(link.shard), "step \(step)")
        }
        for client in connected { link.lose(client) }
        link.advance(milliseconds: 60_000)
        #expect(link.shard.sessions.count == 0)
        #expect(link.shard.sessions.bytes.total == 0)
        for user in 0..<3 {
            let key = "user\(user)".utf8CString.withUnsafeBytes { name in
                link.shard.sessions.key(
                    of: SessionUser(
                        name: UnsafeRawBufferPointer(rebasing: name.dropLast()), proof: .password))
            }
            #expect(link.shard.sessions.bytes.bytes(ofUser: key) == 0)
        }
    }

    private static func filter(_ generator: inout SplitMix64) -> String {
        let levels = (0..<Int.random(in: 1...12, using: &generator)).map { _ in
            ["a", "b", "a-longer-level", "+"].randomElement(using: &generator) ?? ""
        }
        let group = Int.random(in: 0..<4, using: &generator)
        return (group == 0 ? "$share/group/" : "") + levels.joined(separator: "/")
    }
}
