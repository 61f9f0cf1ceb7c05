import COpenSSL
import Glibc
import Synchronization
import Testing

@testable import TLS

@Suite("TLS handshakes with OpenSSL as the peer")
struct HandshakeTests {
    static let versions = [SecureChannel.Version.tls12, .tls13]

    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates() }

    private func pair(_ name: String, _ alternatives: String? = nil) throws -> TLSSettings.Pair {
        try certificates.make(
            commonName: Array(name.utf8), alternativeNames: alternatives
        ).files
    }

    private func shake(_ client: OpenSSLClient, _ context: TLSContext) throws -> TLSPeer {
        try ServerEnd(client, context).peer
    }

    private func failure(_ client: OpenSSLClient, _ context: TLSContext) throws -> TLSFailure {
        let outcome = try client.shakeHands(
            TLSHandshake(context, descriptor: client.descriptor))
        guard case .failed(let failure) = outcome else {
            throw TestCertificates.Failure(description: "\(outcome)")
        }
        return failure
    }

    // MARK: Names

    @Test("the certificate that is made for a name is served for it", arguments: versions)
    func serverNames(version: SecureChannel.Version) throws {
        let context = try TLSContext(
            TLSSettings(
                place: "test",
                certificates: [
                    try pair("first", "DNS:first.example"),
                    try pair("wild", "DNS:*.wild.example"),
                    try pair("exact", "DNS:a.wild.example"),
                    try pair("plain.example"),
                ]), tickets: TicketKeys())
        let expected: [(String?, String)] = [
            ("first.example", "first"), ("a.wild.example", "exact"), ("A.Wild.EXAMPLE", "exact"),
            ("b.wild.example", "wild"), ("plain.example", "plain.example"),
            ("x.y.wild.example", "first"),
            ("nowhere", "first"), (nil, "first"), ("wild.example", "first"), ("-", "first"),
            (String(repeating: "a", count: 255), "first"), ("..", "first"),
            ("\u{1}\u{7f}", "first"),
        ]
        for (name, common) in expected {
            var options = OpenSSLClient.Options(version: version)
            options.serverName = name
            let client = try OpenSSLClient(options)
            _ = try shake(client, context)
            #expect(client.serverCommonName == common, "\(name ?? "no name")")
        }
    }

    // MARK: Resumption

    @Test("a session is resumed, with another context of the same keys too", arguments: versions)
    func resumption(version: SecureChannel.Version) throws {
        let settings = TLSSettings(place: "test", certificates: [try pair("localhost")])
        let tickets = TicketKeys()
        let first = try TLSContext(settings, tickets: tickets)
        let second = try TLSContext(settings, tickets: tickets)
        let other = try TLSContext(settings, tickets: TicketKeys())

        let client = try OpenSSLClient(.init(version: version))
        #expect(try !shake(client, first).isResumed)
        _ = client.read()
        // One ticket is enough; OpenSSL would make two.
        #expect(client.sessions.count == 1)
        for (context, isResumed) in [(first, true), (second, true), (other, false)] {
            let again = try OpenSSLClient(
                .init(version: version, session: client.lastSession()))
            #expect(try shake(again, context).isResumed == isResumed)
            #expect(again.isResumed == isResumed)
        }
    }

    @Test("a resumed session gets a ticket again, so that none is shown twice in TLS 1.3")
    func renewal() throws {
        let context = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]),
            tickets: TicketKeys())
        let client = try OpenSSLClient()
        _ = try shake(client, context)
        _ = client.read()
        var session = try client.lastSession()
        var clients = [client]
        for _ in 0..<3 {
            let again = try OpenSSLClient(.init(session: session))
            #expect(try shake(again, context).isResumed)
            _ = again.read()
            session = try again.lastSession()
            clients.append(again)
        }
    }

    @Test("tickets of an expired key are rejected", arguments: versions)
    func oldTickets(version: SecureChannel.Version) throws {
        let now = Mutex(Int64(1_000_000))
        let clock = Clock(now)
        let context = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]),
            tickets: TicketKeys { clock.read() })
        let client = try OpenSSLClient(.init(version: version))
        _ = try shake(client, context)
        _ = client.read()
        let session = try client.lastSession()
        for (seconds, isResumed) in [
            (TicketKeys.rotationSeconds, true), (TicketKeys.lifetimeSeconds - 1, true),
            (TicketKeys.lifetimeSeconds, false),
        ] {
            clock.set(1_000_000 + seconds)
            let again = try OpenSSLClient(.init(version: version, session: session))
            #expect(try shake(again, context).isResumed == isResumed, "\(seconds) s")
        }
    }

    // MARK: Clients' certificates

    private func authority() throws -> TestCertificates.Pair {
        try certificates.make(commonName: Array("Authority".utf8), isAuthority: true)
    }

    private func context(
        _ rule: TLSSettings.ClientCertificates, _ authority: TestCertificates.Pair,
        tickets: TicketKeys = TicketKeys(), place: String = "test"
    ) throws -> TLSContext {
        var settings = TLSSettings(place: place, certificates: [try pair("localhost")])
        settings.clientCertificates = rule
        settings.clientCAFile = authority.files.certificate
        settings.takesUserName = true
        return try TLSContext(settings, tickets: tickets)
    }

    @Test("the common name of a client's certificate is its user name", arguments: versions)
    func userName(version: SecureChannel.Version) throws {
        let authority = try authority()
        let context = try context(.required, authority)
        let identity = try certificates.make(commonName: Array("jürgen".utf8), issuer: authority)
        let client = try OpenSSLClient(.init(version: version, identity: identity))
        #expect(try shake(client, context).userName == Array("jürgen".utf8))
        _ = client.read()
        // The ticket holds the certificate.
        let again = try OpenSSLClient(
            .init(version: version, session: client.lastSession()))
        let peer = try shake(again, context)
        #expect(peer.isResumed)
        #expect(peer.userName == Array("jürgen".utf8))
    }

    @Test(
        "a common name that cannot be a user name is refused",
        arguments: [
            // OpenSSL itself rejects a certificate with invalid UTF-8.
            Array("a\0b".utf8), [0],
            Array("a\nb".utf8), [0x61, 0xC2, 0x85], Array("\u{1B}[31m".utf8), [0x7F],
        ])
    func unusableNames(name: [UInt8]) throws {
        let authority = try authority()
        let identity = try certificates.make(commonName: name, issuer: authority)
        let client = try OpenSSLClient(.init(identity: identity))
        #expect(try failure(client, context(.required, authority)).reason == .certificateName)
    }

    @Test("a certificate without a common name, or with two, gives no user name")
    func ambiguousNames() throws {
        let authority = try authority()
        let context = try context(.required, authority)
        let nameless = try certificates.make(commonName: nil, issuer: authority)
        let twofold = try certificates.make(
            commonName: Array("alice".utf8), issuer: authority, secondName: Array("root".utf8))
        for identity in [nameless, twofold] {
            let client = try OpenSSLClient(.init(identity: identity))
            #expect(try failure(client, context).reason == .certificateName)
        }
    }

    @Test(
        "without the required certificate, or with a foreign one, clients are rejected",
        arguments: versions)
    func strangers(version: SecureChannel.Version) throws {
        let authority = try authority()
        let required = try context(.required, authority)
        let optional = try context(.optional, authority)
        let own = try certificates.make(commonName: Array("mallory".utf8))
        let over = try certificates.make(
            commonName: Array("old".utf8), issuer: authority, days: 0)

        let nobody = try OpenSSLClient(.init(version: version))
        #expect(try failure(nobody, required).reason == .noCertificate)
        let anonymous = try OpenSSLClient(.init(version: version))
        #expect(try shake(anonymous, optional).userName == nil)
        for (identity, context) in [(own, required), (own, optional), (over, required)] {
            let client = try OpenSSLClient(.init(version: version, identity: identity))
            #expect(try failure(client, context).reason == .certificate)
        }
    }

    @Test("a session that began under other rules is not resumed", arguments: versions)
    func changedRules(version: SecureChannel.Version) throws {
        let authority = try authority()
        let tickets = TicketKeys()
        let open = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]), tickets: tickets)
        let strict = try context(.required, authority, tickets: tickets)
        let client = try OpenSSLClient(.init(version: version))
        _ = try shake(client, open)
        _ = client.read()
        let again = try OpenSSLClient(
            .init(version: version, session: client.lastSession()))
        #expect(try failure(again, strict).reason == .noCertificate)
    }

    // MARK: What is no handshake

    @Test("bytes that are no TLS are told from TLS that is wrong")
    func noTLS() throws {
        let context = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]),
            tickets: TicketKeys())
        let connect: [UInt8] = [0x10, 12, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 0, 0, 0]
        let cases: [([UInt8], TLSFailure.Reason)] = [
            (connect, .notTLS), (Array("GET / HTTP/1.1\r\n\r\n".utf8), .notTLS),
            (Array("CONNECT a:1 HTTP/1.1\r\n".utf8), .notTLS),
            (Array("PROXY TCP4 192.0.2.1".utf8), .notTLS),
            (Array("\r\n\r\n\0\r\nQUIT\n".utf8), .notTLS),
            ([22, 3, 1, 0, 4, 1, 0, 0, 0], .protocolError),
            ([22, 3, 1, 255, 255] + [UInt8](repeating: 1, count: 20_000), .tooLarge),
            ([], .closed),
        ]
        for (bytes, reason) in cases {
            var pair: [CInt] = [-1, -1]
            try #require(
                socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | O_NONBLOCK, 0, &pair) == 0)
            defer { pair.forEach { close($0) } }
            _ = send(pair[0], bytes, bytes.count, 0)
            shutdown(pair[0], CInt(SHUT_WR))
            let outcome = TLSHandshake(context, descriptor: pair[1]).step()
            guard case .failed(let failure) = outcome else {
                Issue.record("\(outcome) of \(bytes.prefix(8))")
                continue
            }
            #expect(failure.reason == reason, "\(bytes.prefix(8)): \(failure.explanation)")
            #expect(failure.opening == (reason == .notTLS ? Array(bytes.prefix(5)) : []))
        }
    }

    @Test("a handshake that sends without end is cut off")
    func endless() throws {
        let context = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]),
            tickets: TicketKeys())
        var pair: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | O_NONBLOCK, 0, &pair) == 0)
        defer { pair.forEach { close($0) } }
        let handshake = TLSHandshake(context, descriptor: pair[1])
        // Records of a ClientHello that announces 16 MB.
        let header: [UInt8] = [22, 3, 1, 0x10, 0, 1, 0xFF, 0xFF, 0xFF]
        var record = header + [UInt8](repeating: 0, count: 4_092)
        var outcome = TLSHandshake.Outcome.wantsRead
        for _ in 0..<100 {
            guard case .wantsRead = outcome else { break }
            _ = send(pair[0], record, record.count, 0)
            record = [22, 3, 1, 0x10, 0] + [UInt8](repeating: 0, count: 4_096)
            outcome = handshake.step()
        }
        guard case .failed(let failure) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(failure.reason == .tooLarge, "\(failure.explanation)")
    }

    @Test("a handshake in tiny pieces is cut off, at once or one by one", arguments: [false, true])
    func tinyPieces(isDrip: Bool) throws {
        let context = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]),
            tickets: TicketKeys())
        var pair: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | O_NONBLOCK, 0, &pair) == 0)
        defer { pair.forEach { close($0) } }
        let handshake = TLSHandshake(context, descriptor: pair[1])
        // A ClientHello of 100,000 bytes, one byte a record.
        let start: [UInt8] = [1, 1, 0x86, 0xA0]
        let message = start + [UInt8](repeating: 0, count: 2_000)
        let records = message.map { [22, 3, 1, 0, 1, $0] as [UInt8] }
        var steps = 0
        var outcome = TLSHandshake.Outcome.wantsRead
        if !isDrip {
            let stream = records.flatMap { $0 }
            #expect(send(pair[0], stream, stream.count, 0) == stream.count)
        }
        while case .wantsRead = outcome, steps < 1_000 {
            if isDrip { _ = send(pair[0], records[steps], 6, 0) }
            outcome = handshake.step()
            steps += 1
        }
        guard case .failed(let failure) = outcome else {
            Issue.record("\(outcome) after \(steps) steps")
            return
        }
        #expect(failure.reason == .tooLarge, "\(failure.explanation)")
        #expect(isDrip ? (64...256).contains(steps) : steps == 1, "\(steps)")
    }

    @Test("a step of an abandoned handshake does nothing")
    func abandoned() throws {
        let context = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]),
            tickets: TicketKeys())
        let client = try OpenSSLClient()
        let handshake = TLSHandshake(context, descriptor: client.descriptor)
        SSL_do_handshake(client.ssl)
        handshake.abandon()
        guard case .failed(let failure) = handshake.step() else {
            Issue.record("it went on")
            return
        }
        #expect(failure.reason == .closed)
        var byte: UInt8 = 0
        #expect(recv(client.descriptor, &byte, 1, 0) == 1, "what the client sent was read")
        #expect(!handshake.hasSigned)
    }

    @Test(
        "bytes after a handshake are kept, and the ticket of TLS 1.3 waits for the first answer",
        arguments: versions)
    func rest(version: SecureChannel.Version) throws {
        let context = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]),
            tickets: TicketKeys())
        let client = try OpenSSLClient(.init(version: version))
        let handshake = TLSHandshake(context, descriptor: client.descriptor)
        SSL_do_handshake(client.ssl)
        guard case .wantsRead = handshake.step() else {
            Issue.record("no second step")
            return
        }
        SSL_do_handshake(client.ssl)
        if version == .tls13 { client.write([1, 2, 3]) }
        guard case .established = handshake.step() else {
            Issue.record("not established")
            return
        }
        var input: [UInt8] = []
        var output: [UInt8] = []
        handshake.withRest { (input, output) = ([UInt8]($0), [UInt8]($1)) }
        #expect(client.read().isEmpty)
        if version == .tls12 {
            // The broker's Finished comes last, after its ticket.
            #expect(input.isEmpty && output.isEmpty)
            #expect(client.sessions.count == 1)
            return
        }
        var channel = SecureChannel.none
        #expect(handshake.takeChannel(into: &channel))
        var ciphers = RecordCiphers()
        #expect(channel.opened(input, &ciphers).1 == [1, 2, 3])
        #expect(client.sessions.isEmpty)
        output += channel.sealed([4], &ciphers)
        #expect(send(client.descriptor, output, output.count, 0) == output.count)
        #expect(client.read() == [4])
        #expect(client.sessions.count == 1)
    }

    @Test("a handshake says when it has signed", arguments: versions)
    func signing(version: SecureChannel.Version) throws {
        let context = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]),
            tickets: TicketKeys())
        let client = try OpenSSLClient(.init(version: version))
        let handshake = TLSHandshake(context, descriptor: client.descriptor)
        _ = handshake.step()
        #expect(!handshake.hasSigned)
        SSL_do_handshake(client.ssl)
        _ = handshake.step()
        #expect(handshake.hasSigned)
    }

    @Test("records are counted on from tickets, and no count is taken that cannot be right")
    func sealedRecords() throws {
        let context = try TLSContext(
            TLSSettings(place: "test", certificates: [try pair("localhost")]),
            tickets: TicketKeys())
        var trace = HandshakeTrace(context: context, descriptor: -1)
        func header() { trace.note(sent: SSL3_RT_HEADER, [23, 3, 3, 0, 1], 5, isTLS13: true) }
        func message(_ type: CInt) {
            trace.note(
                sent: CInt(SecureChannel.ContentType.handshake), [UInt8(type)], 1, isTLS13: true)
        }
        header()
        #expect(trace.sealedRecords == nil)
        message(SSL3_MT_FINISHED)
        #expect(trace.sealedRecords == 0)
        message(SSL3_MT_NEWSESSION_TICKET)
        #expect(trace.sealedRecords == nil)
        header()
        #expect(trace.sealedRecords == 1)
        // A large header takes several records.
        header()
        message(SSL3_MT_NEWSESSION_TICKET)
        #expect(trace.sealedRecords == 2)
        message(SSL3_MT_NEWSESSION_TICKET)
        #expect(trace.sealedRecords == nil)
    }

    @Test("versions before TLS 1.2, and 1.2 where 1.3 is asked for, are refused")
    func oldVersions() throws {
        var settings = TLSSettings(place: "test", certificates: [try pair("localhost")])
        settings.minimumVersion = .tls13
        let context = try TLSContext(settings, tickets: TicketKeys())
        let client = try OpenSSLClient(.init(version: .tls12))
        #expect(try failure(client, context).reason == .noCommonParameters)
        for suite in [
            "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA256", "DHE-RSA-AES128-GCM-SHA256",
        ] {
            settings.minimumVersion = .tls12
            let client = try OpenSSLClient(.init(version: .tls12, suite: suite))
            let failure = try failure(client, TLSContext(settings, tickets: TicketKeys()))
            #expect(failure.reason == .noCommonParameters, "\(suite)")
        }
    }
}

/// A clock that the test sets.
final class Clock: Sendable {
    private let now: Mutex<Int64>

    init(_ now: consuming Mutex<Int64>) { self.now = now }

    func read() -> Int64 { now.withLock { $0 } }
    func set(_ time: Int64) { now.withLock { $0 = time } }
}
