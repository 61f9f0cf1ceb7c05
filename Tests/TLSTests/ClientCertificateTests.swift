import COpenSSL
import Synchronization
import Testing

@testable import TLS

/// Expiry, revocation and changed authorities end the trust in a client certificate, even after it
/// was verified.
@Suite("Client certificates that are no longer accepted")
struct ClientCertificateTests {
    private static let day: Int64 = 86_400

    private let certificates: TestCertificates
    private let server: TestCertificates.Pair
    private let root: TestCertificates.Pair
    private let clock = Clock(Mutex(Int64(time(nil))))
    private let tickets: TicketKeys

    init() throws {
        certificates = try TestCertificates()
        server = try certificates.make(commonName: Array("localhost".utf8))
        root = try certificates.make(commonName: Array("Root".utf8), isAuthority: true)
        let clock = clock
        tickets = TicketKeys { clock.read() }
    }

    private func context(
        _ authority: TestCertificates.Pair? = nil, list: String? = nil,
        rule: TLSSettings.ClientCertificates = .required
    ) throws -> TLSContext {
        var settings = TLSSettings(place: "test", certificates: [server.files])
        settings.clientCertificates = rule
        settings.clientCAFile = (authority ?? root).files.certificate
        settings.crlFile = list
        return try TLSContext(settings, tickets: tickets)
    }

    private func client(
        _ version: SecureChannel.Version, _ identity: TestCertificates.Pair,
        chain: [TestCertificates.Pair] = [], session: OpaquePointer? = nil
    ) throws -> OpenSSLClient {
        var options = OpenSSLClient.Options(version: version, identity: identity)
        options.chain = chain
        options.session = session
        return try OpenSSLClient(options)
    }

    /// True when a session of `first` is resumed after `seconds`.
    private func isResumed(
        _ version: SecureChannel.Version, _ identity: TestCertificates.Pair,
        chain: [TestCertificates.Pair] = [], from first: TLSContext, in second: TLSContext,
        after seconds: Int64
    ) throws -> Bool {
        let start = clock.read()
        defer { clock.set(start) }
        let known = try client(version, identity, chain: chain)
        #expect(try !ServerEnd(known, first).peer.isResumed)
        _ = known.read()
        clock.set(start + seconds)
        let again = try client(version, identity, chain: chain, session: known.lastSession())
        let peer = try ServerEnd(again, second).peer
        #expect(peer.client != nil)
        return peer.isResumed
    }

    // MARK: Tickets

    @Test(
        "a session can be resumed until the first certificate or list of its verification expires",
        arguments: HandshakeTests.versions)
    func verdictEnds(version: SecureChannel.Version) throws {
        let phone = try certificates.make(commonName: Array("phone".utf8), issuer: root)
        let all = try context(list: certificates.list("a", of: root))
        #expect(try isResumed(version, phone, from: all, in: all, after: Self.day - 60))
        #expect(try isResumed(version, phone, from: all, in: all, after: Self.day + 3_600))

        let shortList = try context(list: certificates.list("b", of: root, days: 1))
        #expect(try isResumed(version, phone, from: shortList, in: shortList, after: 3_600))
        #expect(
            try !isResumed(version, phone, from: shortList, in: shortList, after: Self.day + 3_600))

        let shortPhone = try certificates.make(
            commonName: Array("phone".utf8), issuer: root, days: 1)
        #expect(try !isResumed(version, shortPhone, from: all, in: all, after: Self.day + 3_600))
    }

    @Test(
        "an expired authority, last or intermediate, ends sessions",
        arguments: HandshakeTests.versions)
    func authorityEnds(version: SecureChannel.Version) throws {
        let shortRoot = try certificates.make(
            commonName: Array("Short root".utf8), isAuthority: true, days: 1)
        let middle = try certificates.make(
            commonName: Array("Middle".utf8), issuer: root, isAuthority: true, days: 1)
        let below = try certificates.make(commonName: Array("a".utf8), issuer: middle)
        let other = try certificates.make(commonName: Array("b".utf8), issuer: shortRoot)
        let (first, second) = (try context(), try context(shortRoot))
        for (seconds, isGood) in [(3_600, true), (Self.day + 3_600, false)] {
            #expect(
                try isResumed(
                    version, below, chain: [middle], from: first, in: first, after: seconds)
                    == isGood)
            #expect(
                try isResumed(version, other, from: second, in: second, after: seconds) == isGood)
        }
    }

    @Test("a session that is passed on keeps the end it had", arguments: HandshakeTests.versions)
    func renewedTickets(version: SecureChannel.Version) throws {
        let phone = try certificates.make(
            commonName: Array("phone".utf8), issuer: root, days: 1)
        let context = try context()
        let start = clock.read()
        var known = try client(version, phone)
        _ = try ServerEnd(known, context)
        _ = known.read()
        // A resumed session of TLS 1.3 gets a new ticket; one of TLS 1.2 is shown again.
        for hours in [6, 12, 18] {
            clock.set(start + Int64(hours) * 3_600)
            let again = try client(version, phone, session: known.lastSession())
            #expect(try ServerEnd(again, context).peer.isResumed, "after \(hours) hours")
            _ = again.read()
            if again.sessions.isEmpty { continue }
            known = again
        }
        clock.set(start + Self.day + 60)
        let late = try client(version, phone, session: known.lastSession())
        #expect(try !ServerEnd(late, context).peer.isResumed)
    }

    @Test(
        "a list that is read later ends the sessions and the trust of those on it",
        arguments: HandshakeTests.versions)
    func laterList(version: SecureChannel.Version) throws {
        let middle = try certificates.make(
            commonName: Array("Middle".utf8), issuer: root, isAuthority: true)
        let phone = try certificates.make(commonName: Array("phone".utf8), issuer: middle)
        let kept = try certificates.make(commonName: Array("kept".utf8), issuer: root)
        let first = try context(list: certificates.lists("a", of: [root, middle]))
        var clients: [(TestCertificates.Pair, VerifiedClient, OpenSSLClient)] = []
        for (identity, chain) in [(phone, [middle]), (kept, [])] {
            let known = try client(version, identity, chain: chain)
            let peer = try ServerEnd(known, first).peer
            _ = known.read()
            clients.append((identity, try #require(peer.client), known))
        }
        for revoked in [phone, middle] {
            let second = try context(
                list: certificates.lists("b", of: [root, middle], revoked: [revoked]))
            #expect(first.admits(clients[0].1) && !second.admits(clients[0].1))
            #expect(second.admits(clients[1].1))
            let again = try client(
                version, phone, chain: [middle], session: clients[0].2.lastSession())
            #expect(try failure(again, second).reason == .certificate)
        }
        // With another authority, former clients are unknown.
        let other = try certificates.make(commonName: Array("Root".utf8), isAuthority: true)
        #expect(try !context(other).admits(clients[1].1))
    }

    // MARK: Chains

    @Test("a revoked authority vouches for no client", arguments: HandshakeTests.versions)
    func revokedAuthority(version: SecureChannel.Version) throws {
        let middle = try certificates.make(
            commonName: Array("Middle".utf8), issuer: root, isAuthority: true)
        let phone = try certificates.make(commonName: Array("phone".utf8), issuer: middle)
        let cases: [(String, isIn: Bool)] = [
            (try certificates.lists("none", of: [root, middle]), true),
            (try certificates.lists("middle", of: [root, middle], revoked: [middle]), false),
            (try certificates.lists("phone", of: [root, middle], revoked: [phone]), false),
            // Without an authority's list, its revocations are unknown.
            (try certificates.lists("no root", of: [middle]), false),
            (try certificates.lists("no middle", of: [root]), false),
        ]
        for (list, isIn) in cases {
            let context = try context(list: list)
            let client = try client(version, phone, chain: [middle])
            if isIn {
                _ = try ServerEnd(client, context)
            } else {
                #expect(try failure(client, context).reason == .certificate, "\(list)")
            }
        }
    }

    private func failure(_ client: OpenSSLClient, _ context: TLSContext) throws -> TLSFailure {
        let outcome = try client.shakeHands(TLSHandshake(context, descriptor: client.descriptor))
        guard case .failed(let failure) = outcome else {
            throw TestCertificates.Failure(description: "\(outcome)")
        }
        return failure
    }

    // MARK: What is kept

    @Test("a ticket's content is restored, and other bytes are rejected")
    func coding() throws {
        let bytes = (0..<5).flatMap { number in (0..<8).map { UInt8(number * 8 + $0) } }
        for count in 0...bytes.count {
            let client = bytes[..<count].withUnsafeBytes { VerifiedClient(encoded: $0) }
            #expect((client != nil) == (count >= 24 && count % 8 == 0), "\(count)")
            if let client { #expect(client.encoded == Array(bytes[..<count])) }
        }
    }
}
