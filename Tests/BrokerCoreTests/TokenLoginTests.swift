import Authorization
import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Logins by tokens")
struct TokenLoginTests {
    private typealias Request = PacketContent.Request

    /// A link whose clients come with the logins that `logins` names by their passwords' first byte.
    private func link(
        _ logins: [Login], rules text: String? = nil
    ) throws -> ShardLink {
        let link = ShardLink(access: try text.map { try rules($0) }, verifiesPasswords: true)
        link.answer = { .admitted(logins[Int($0.password.first ?? 0)]) }
        return link
    }

    private func login(
        _ user: String = "anna", publish: [String]? = nil, subscribe: [String]? = nil,
        endsInSeconds: Int64? = nil
    ) throws -> Login {
        let allowance =
            publish == nil && subscribe == nil
            ? nil : try TopicAllowance(publish: publish, subscribe: subscribe)
        return Login(
            userName: Array(user.utf8), allowance: allowance,
            endsAtMs: endsInSeconds.map { 1_700_000_000_000 + $0 * 1_000 })
    }

    /// A client with the login of this number.
    private func connect(
        _ link: ShardLink, _ identifier: String, login: UInt8 = 0, cleanSession: Bool = true,
        will: String? = nil
    ) throws -> Handle {
        try link.connect(identifier, cleanSession: cleanSession) { connect in
            connect.userName = []
            connect.password = [login]
            if let will {
                connect.will = PacketContent.Will(
                    topic: will, message: Array("gone".utf8), retain: false)
            }
        }
    }

    // MARK: The user

    @Test("the session is the token's user's, whatever CONNECT names")
    func user() throws {
        let link = try link([try login("anna"), try login("berta")])
        let phone = try connect(link, "phone", cleanSession: false)
        #expect(link.client("phone")?.userName == "anna")
        link.lose(phone)
        let thief = try connect(link, "phone", login: 1, cleanSession: false)
        #expect(link.closed.contains(thief))
        #expect(link.closeReasons.last == .notAuthorized)
    }

    @Test("a token's user is held to the limit of user names")
    func longName() throws {
        let link = ShardLink({ $0.maxUserNameBytes = 8 }, verifiesPasswords: true)
        link.answer = { _ in .admitted(Login(userName: Array("123456789".utf8))) }
        let phone = try connect(link, "phone")
        #expect(link.closed.contains(phone))
        #expect(link.closeReasons.last == .userNameTooLong)
    }

    @Test(
        "each answer has its return code",
        arguments: [
            (0, Connack.ReturnCode.badUserNameOrPassword, CloseReason.badUserNameOrPassword),
            (1, .badUserNameOrPassword, .tokenRefused),
            (2, .serverUnavailable, .authenticationBusy),
        ])
    func refusals(_ number: Int, _ code: Connack.ReturnCode, _ reason: CloseReason) throws {
        let link = ShardLink(verifiesPasswords: true)
        let answers: [LoginAnswer] = [
            .wrongPassword, .tokenRefused(detail: "its token is old"), .busy(detail: "its key"),
        ]
        link.answer = { _ in answers[number] }
        let handle = link.open()
        var connect = PacketContent.Connect(clientID: "phone")
        connect.userName = []
        connect.password = [1]
        try link.send(handle, .connect(connect))
        #expect(try link.take(handle) == [.connack(.refused(code))])
        #expect(link.closeReasons.last == reason)
        let details = link.notices.compactMap { notice in
            if case .refused(_, _, _, _, let detail) = notice { detail } else { nil }
        }
        #expect(details == [[], ["its token is old"], ["its key"]][number])
    }

    // MARK: Certificates

    @Test(
        "a client that its certificate names is asked about only where another source comes before",
        arguments: [false, true])
    func certificate(asksBefore: Bool) throws {
        let link = ShardLink(verifiesPasswords: true, asksBeforeCertificates: asksBefore)
        var asked: [AuthenticationRequest] = []
        link.answer = {
            asked.append($0)
            return .rightPassword
        }
        let handle = link.open()
        link.shard.identify(handle, Array("device".utf8))
        try link.send(handle, .connect(.init(clientID: "phone")))
        #expect(link.client("phone")?.userName == "device")
        #expect(asked.map(\.certificateName) == (asksBefore ? [Array("device".utf8)] : []))
        #expect(asked.allSatisfy { !$0.mayBeGuess && $0.userName.isEmpty && $0.password.isEmpty })
        link.lose(handle)
        // Another source names another user.
        link.answer = { _ in .admitted(Login(userName: Array("anna".utf8))) }
        let other = link.open()
        link.shard.identify(other, Array("device".utf8))
        try link.send(other, .connect(.init(clientID: "other")))
        #expect(link.client("other")?.userName == (asksBefore ? "anna" : "device"))
    }

    @Test("what is refused of a certificate's user is no guess, unless there is a password")
    func certificateGuess() throws {
        let link = ShardLink(verifiesPasswords: true, asksBeforeCertificates: true)
        var guesses: [Bool] = []
        link.answer = {
            guesses.append($0.mayBeGuess)
            return .denied(detail: "closed")
        }
        for (user, password) in [(nil, nil), ("a", nil), ("a", ""), ("a", "b")]
            as [(String?, String?)]
        {
            let handle = link.open()
            link.shard.identify(handle, Array("device".utf8))
            var connect = PacketContent.Connect(clientID: "phone")
            connect.userName = user.map { Array($0.utf8) }
            connect.password = password.map { Array($0.utf8) }
            try link.send(handle, .connect(connect))
            #expect(try link.take(handle) == [.connack(.refused(.badUserNameOrPassword))])
        }
        #expect(guesses == [false, false, false, true])
        let names = link.notices.compactMap { notice in
            if case .refused(_, _, let name, _, _) = notice { name } else { nil }
        }
        #expect(names == Array(repeating: Array("device".utf8), count: 4))
    }

    // MARK: A token in the request for WebSocket

    @Test(
        "a token before CONNECT is its password, unless it has another one",
        arguments: [
            (nil, nil, "", "token"), ("", nil, "", "token"), ("anna", nil, "anna", "token"),
            ("anna", "", "anna", "token"), ("anna", "token", "anna", "token"),
            ("anna", "other", nil, nil), ("", "toke", nil, nil), ("", "token1", nil, nil),
        ] as [(String?, String?, String?, String?)])
    func tokenOfRequest(
        user: String?, password: String?, askedUser: String?, askedPassword: String?
    ) throws {
        let link = ShardLink(verifiesPasswords: true)
        var asked: [AuthenticationRequest] = []
        link.answer = {
            asked.append($0)
            return .admitted(Login(userName: Array("anna".utf8)))
        }
        var connect = PacketContent.Connect(clientID: "phone")
        connect.userName = user.map { Array($0.utf8) }
        connect.password = password.map { Array($0.utf8) }
        let handle = link.open()
        link.send(handle, try PacketContent.connect(connect).encoded(), token: Array("token".utf8))
        #expect(asked.map(\.userName) == (askedUser.map { [Array($0.utf8)] } ?? []))
        #expect(asked.map(\.password) == (askedPassword.map { [Array($0.utf8)] } ?? []))
        if askedPassword == nil {
            #expect(try link.take(handle) == [.connack(.refused(.badUserNameOrPassword))])
            #expect(link.closeReasons.last == .tokenRefused)
        } else {
            #expect(link.client("phone")?.userName == "anna")
        }
    }

    @Test("a login that names no user lets nobody in whose CONNECT names none, though anybody may")
    func tokenOfNobody() throws {
        let link = ShardLink(verifiesPasswords: true)
        let connect = try PacketContent.connect(.init(clientID: "phone")).encoded()
        var empty = PacketContent.Connect(clientID: "phone")
        empty.userName = []
        for connect in [connect, try PacketContent.connect(empty).encoded()] {
            let handle = link.open()
            link.send(handle, connect, token: [1])
            #expect(try link.take(handle) == [.connack(.refused(.badUserNameOrPassword))])
            #expect(link.closeReasons.last == .tokenRefused)
        }
        // Without a token it is anonymous.
        let other = link.open()
        link.send(other, connect)
        #expect(link.client("phone")?.userName == nil)
    }

    // MARK: The end

    @Test("a connection ends at the time of its login and not before, and its will is published")
    func endsInTime() throws {
        let link = try link([try login(), try login(endsInSeconds: 10)])
        let watcher = try connect(link, "watcher")
        try link.send(watcher, .subscribe("wills/#", .atMostOnce))
        _ = try link.take(watcher)
        let phone = try connect(link, "phone", login: 1, will: "wills/phone")
        link.advance(milliseconds: 9_900)
        #expect(!link.closed.contains(phone))
        link.advance(milliseconds: 200)
        #expect(link.closed.contains(phone))
        #expect(link.closeReasons == [.tokenExpired])
        #expect(payloads(try link.take(watcher)) == ["gone"])
    }

    @Test("the clock's being set back gives the time back")
    func clockSetBack() throws {
        let link = try link([try login(endsInSeconds: 10)])
        let phone = try connect(link, "phone")
        link.shard.beginTurn(
            at: link.shard.now.advanced(byMilliseconds: 11_000), wallClockMs: 1_700_000_001_000)
        link.turn()
        #expect(!link.closed.contains(phone))
        link.advance(milliseconds: 9_200)
        #expect(link.closed.contains(phone))
    }

    @Test("a newer login of the same client has its own end")
    func newerLogin() throws {
        let link = try link([
            try login(endsInSeconds: 10), try login(endsInSeconds: 100), try login(),
        ])
        _ = try connect(link, "phone", cleanSession: false)
        let second = try connect(link, "phone", login: 1, cleanSession: false)
        link.advance(milliseconds: 20_000)
        #expect(!link.closed.contains(second))
        let third = try connect(link, "phone", login: 2, cleanSession: false)
        link.advance(milliseconds: 200_000)
        #expect(!link.closed.contains(third))
        let isEmpty = link.shard.logins.isEmpty
        #expect(isEmpty)
    }

    @Test("nothing is kept of logins whose connections have closed")
    func forgotten() throws {
        let link = try link([try login(subscribe: ["a"], endsInSeconds: 10)])
        for number in 0..<100 { link.lose(try connect(link, "phone-\(number)")) }
        let (isEmpty, deadline) = (link.shard.logins.isEmpty, link.shard.logins.nextDeadline)
        #expect(isEmpty && deadline == nil)
        let isRestricted = link.shard.rights.areRestricted
        #expect(!isRestricted)
        let bytes = link.shard.sessions.bytes.total
        #expect(bytes == 0)
    }

    // MARK: Topics

    @Test(
        "what the login does not allow is refused, with and without rules",
        arguments: [false, true])
    func narrows(hasRules: Bool) throws {
        let link = try link(
            [try login(), try login(publish: ["up/%u"], subscribe: ["down/%c/#"])],
            rules: hasRules ? "allow everyone both #" : nil)
        let phone = try connect(link, "phone", login: 1)
        try link.send(
            phone,
            .subscribe(
                7,
                [
                    Request("down/phone/1", .atMostOnce), Request("down/other/1", .atMostOnce),
                    Request("down/#", .atMostOnce),
                ]))
        #expect(try link.take(phone) == [.suback(7, [0, 0x80, 0])])
        let office = try connect(link, "office")
        for topic in ["down/other/1", "down/phone/2"] {
            try link.send(office, .publish(topic, topic))
        }
        #expect(payloads(try link.take(phone)) == ["down/phone/2"])
        #expect(link.refusals("deliver") == 1)
        try link.send(phone, .publish("up/anna", "1"))
        #expect(!link.closed.contains(phone))
        try link.send(phone, .publish("up/berta", "2"))
        #expect(link.closed.contains(phone))
        #expect(link.reports.allSatisfy { $0.line == AccessVerdict.loginLine })
    }

    @Test("rules and login must both allow")
    func both() throws {
        let link = try link(
            [try login(publish: ["a", "b"])], rules: "allow everyone publish b\n")
        let phone = try connect(link, "phone")
        try link.send(phone, .publish("b", "1"))
        #expect(!link.closed.contains(phone))
        try link.send(phone, .publish("a", "1"))
        #expect(link.closed.contains(phone))
        #expect(link.reports.last?.line == 0)
    }

    @Test("a will that the login does not allow is not kept")
    func will() throws {
        let link = try link([try login(), try login(publish: ["up/#"])])
        let watcher = try connect(link, "watcher")
        try link.send(watcher, .subscribe("#", .atMostOnce))
        _ = try link.take(watcher)
        let first = try connect(link, "first", login: 1, will: "wills/first")
        let second = try connect(link, "second", login: 1, will: "up/second")
        link.lose(first)
        link.lose(second)
        #expect(payloads(try link.take(watcher)) == ["gone"])
        #expect(link.refusals("will") == 1)
    }

    @Test(
        "what waits for a client is held to the login that it comes with", arguments: [false, true])
    func resumed(isDurable: Bool) throws {
        let link = ShardLink(verifiesPasswords: true, isDurable: isDurable)
        let logins = [
            try login(), try login(subscribe: ["a", "b"]), try login(subscribe: ["a"]),
        ]
        link.answer = { .admitted(logins[Int($0.password.first ?? 0)]) }
        let office = try connect(link, "office")
        let phone = try connect(link, "phone", login: 1, cleanSession: false)
        try link.send(phone, .subscribe("#", .atLeastOnce))
        link.lose(phone)
        func publish(_ topics: String...) throws {
            for topic in topics { try link.send(office, .publish(topic, topic, qos: .atLeastOnce)) }
            link.store.completeAll()
            link.turn()
        }
        try publish("a", "b", "c")
        let narrowed = try connected(link, "phone", login: 2)
        #expect(narrowed.payloads == ["a"])
        try publish("b", "a")
        #expect(payloads(try link.take(narrowed.handle)) == ["a"])
        link.lose(narrowed.handle)
        let whole = try connected(link, "phone", login: 0)
        #expect(whole.payloads == ["a", "a"])
        try publish("c", "b")
        #expect(payloads(try link.take(whole.handle)) == ["c", "b"])
    }

    /// Connects to a persistent session, and takes what comes with CONNACK.
    private func connected(
        _ link: ShardLink, _ identifier: String, login: UInt8
    ) throws -> (handle: Handle, payloads: [String]) {
        let handle = link.open()
        var connect = PacketContent.Connect(clientID: identifier)
        connect.cleanSession = false
        connect.userName = []
        connect.password = [login]
        try link.send(handle, .connect(connect))
        for _ in 0..<4 {
            link.store.completeAll()
            link.turn()
        }
        return (handle, payloads(try link.take(handle)))
    }

    @Test("a session counts the topics that its login allows")
    func counted() throws {
        let filters = (0..<50).map { "orders/\($0)/#" }
        let link = try link([try login(), try login(subscribe: filters)])
        let phone = try connect(link, "phone", login: 1, cleanSession: false)
        let narrow = link.shard.sessions.bytes.total
        link.lose(phone)
        _ = try connect(link, "phone", login: 0, cleanSession: false)
        #expect(narrow - link.shard.sessions.bytes.total >= 50 * 12)
    }
}
