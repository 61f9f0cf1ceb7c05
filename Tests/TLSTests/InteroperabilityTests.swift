import COpenSSL
import Glibc
import HermesTesting
import Testing

@testable import TLS

/// Our record layer with OpenSSL's as peer.
@Suite("TLS records with OpenSSL as the peer")
final class InteroperabilityTests {
    struct Suite: Sendable, CustomTestStringConvertible {
        var version: SecureChannel.Version
        var name: String
        var testDescription: String { name }
    }

    static let suites = [
        Suite(version: .tls13, name: "TLS_AES_128_GCM_SHA256"),
        Suite(version: .tls13, name: "TLS_AES_256_GCM_SHA384"),
        Suite(version: .tls13, name: "TLS_CHACHA20_POLY1305_SHA256"),
        Suite(version: .tls12, name: "ECDHE-ECDSA-AES128-GCM-SHA256"),
        Suite(version: .tls12, name: "ECDHE-ECDSA-AES256-GCM-SHA384"),
        Suite(version: .tls12, name: "ECDHE-ECDSA-CHACHA20-POLY1305"),
    ]

    private let certificates: TestCertificates
    private let context: TLSContext
    private var ciphers = RecordCiphers()

    init() throws {
        certificates = try TestCertificates()
        let pair = try certificates.make(commonName: Array("localhost".utf8))
        context = try TLSContext(
            TLSSettings(place: "test", certificates: [pair.files]), tickets: TicketKeys())
    }

    private func options(_ suite: Suite) -> OpenSSLClient.Options {
        OpenSSLClient.Options(version: suite.version, suite: suite.name)
    }

    @Test("bytes of any size arrive, both ways and in turn", arguments: suites, UInt64(1)...3)
    func traffic(suite: Suite, seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let client = try OpenSSLClient(options(suite))
        var server = try ServerEnd(client, context)
        #expect(server.peer.cipher == suite.name)
        #expect(server.peer.version == suite.version)
        for step in 0..<60 {
            let bytes = random.bytes(
                random.pick([1, 2, 15, 16, 17, 300, 16_383, 16_384, 16_385, 40_000]))
            if random.once(in: 2) {
                client.write(bytes)
                #expect(server.read(&ciphers) == bytes, "step \(step), seed \(seed)")
            } else {
                server.write(bytes, &ciphers)
                #expect(client.read() == bytes, "step \(step), seed \(seed)")
            }
            if suite.version == .tls13, random.once(in: 4) {
                try changeKeys(&random, client, &server)
            }
        }
        #expect(server.channel.state == .open)
    }

    /// Changes keys in one of three ways.
    private func changeKeys(
        _ random: inout SplitMix64, _ client: OpenSSLClient, _ server: inout ServerEnd
    ) throws {
        switch random.number(in: 0...2) {
        case 0:
            #expect(SSL_key_update(client.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
            client.write([1])
            #expect(server.read(&ciphers) == [1])
            #expect(!server.channel.owesKeyUpdate)
        case 1:
            #expect(SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
            client.write([2])
            #expect(server.read(&ciphers) == [2])
            #expect(server.channel.owesKeyUpdate && server.channel.needsKeyUpdate)
            try updateKey(&server)
        default: try updateKey(&server)
        }
    }

    private func updateKey(_ server: inout ServerEnd) throws {
        var record = [UInt8](repeating: 0, count: 64)
        let size = try record.withUnsafeMutableBytes {
            server.channel.sealKeyUpdate(in: try #require($0.baseAddress), &ciphers)
        }
        server.send([UInt8](record[..<size]))
        #expect(!server.channel.owesKeyUpdate)
    }

    @Test("records are opened from pieces of any size", arguments: suites)
    func pieces(suite: Suite) throws {
        let client = try OpenSSLClient(options(suite))
        var server = try ServerEnd(client, context)
        client.write([1, 2, 3])
        client.write(Array(0...99))
        var chunk = [UInt8](repeating: 0, count: 1_000)
        let count = recv(client.descriptor, &chunk, chunk.count, 0)
        var result: [UInt8] = []
        for byte in chunk[..<count] {
            server.kept.append(byte)
            result += server.open(&ciphers)
        }
        #expect(result == [1, 2, 3] + Array(0...99))
        #expect(server.kept.isEmpty)
    }

    @Test("a client that wants small records gets and may send only those", arguments: suites)
    func fragments(suite: Suite) throws {
        for code in UInt8(1)...4 {
            var options = options(suite)
            options.fragmentCode = code
            let client = try OpenSSLClient(options)
            var server = try ServerEnd(client, context)
            let limit = 256 << Int(code)
            #expect(server.channel.largestFragment == limit)
            let bytes = [UInt8](repeating: code, count: 3 * limit + 1)
            server.write(bytes, &ciphers)
            #expect(client.read() == bytes)
            #expect(server.largestSealed <= limit + SecureChannel.largestOverhead)
            client.write(bytes)
            #expect(server.read(&ciphers) == bytes)
        }
    }

    @Test("explicit nonces go on from the one that OpenSSL drew", arguments: suites[3...4])
    func explicitNonces(suite: Suite) throws {
        var options = options(suite)
        let first = try OpenSSLClient(options)
        var server = try ServerEnd(first, context)
        expectNonces(behind: first.arrived, of: &server)
        options.session = try first.lastSession()
        let second = try OpenSSLClient(options)
        server = try ServerEnd(second, context)
        #expect(server.peer.isResumed)
        expectNonces(behind: second.arrived, of: &server)
    }

    private func expectNonces(behind flight: [UInt8], of server: inout ServerEnd) {
        // Header, explicit nonce, message and tag of the Finished.
        let finished = flight.suffix(45)
        #expect(finished.starts(with: [22, 3, 3, 0, 40]))
        let first = Self.number(finished.dropFirst(5).prefix(8))
        for count in UInt64(1)...300 {
            let record = server.channel.sealed([1], &ciphers)
            #expect(Self.number(record[5..<13]) == first &+ count)
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    @Test("close_notify ends one direction, after the data before it", arguments: suites)
    func ends(suite: Suite) throws {
        let client = try OpenSSLClient(options(suite))
        var server = try ServerEnd(client, context)
        client.write([7])
        #expect(SSL_shutdown(client.ssl) == 0)
        #expect(server.read(&ciphers) == [7])
        #expect(server.channel.state == .closed)
        // Our direction continues, then ends too.
        server.write([8], &ciphers)
        server.send(server.channel.sealedEnd(&ciphers))
        #expect(client.read() == [8])
        #expect(client.readError() == SSL_ERROR_ZERO_RETURN)
        #expect(SSL_shutdown(client.ssl) == 1)
    }

    @Test("renegotiation is rejected", arguments: [suites[3]])
    func renegotiation(suite: Suite) throws {
        let client = try OpenSSLClient(options(suite))
        var server = try ServerEnd(client, context)
        #expect(SSL_renegotiate(client.ssl) == 1)
        SSL_do_handshake(client.ssl)
        #expect(server.read(&ciphers) == [])
        #expect(server.channel.state == .failed(.noRenegotiation))
        server.send(server.channel.sealedEnd(&ciphers))
        // OpenSSL gives up at the warning; close_notify is behind it.
        #expect(client.readError() == SSL_ERROR_SSL)
        #expect(ERR_GET_REASON(ERR_peek_error()) == SSL_R_NO_RENEGOTIATION)
    }

    @Test("a broken record ends the connection with an alert that the client understands")
    func alerts() throws {
        for suite in Self.suites {
            let client = try OpenSSLClient(options(suite))
            var server = try ServerEnd(client, context)
            client.write([1])
            var record = [UInt8](repeating: 0, count: 100)
            let count = recv(client.descriptor, &record, record.count, 0)
            record[count - 1] ^= 1
            server.kept = [UInt8](record[..<count])
            #expect(server.open(&ciphers) == [])
            #expect(server.channel.state == .failed(.badRecordMAC))
            server.send(server.channel.sealedEnd(&ciphers))
            #expect(client.readError() == SSL_ERROR_SSL)
            #expect(ERR_GET_REASON(ERR_peek_error()) == SSL_R_SSLV3_ALERT_BAD_RECORD_MAC)
        }
    }
}
