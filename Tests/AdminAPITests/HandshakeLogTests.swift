import NIOCore
import Testing

@testable import AdminAPI

@Suite("Log of TLS handshakes that failed")
struct HandshakeLogTests {
    private static let message = "Admin TLS handshake failed"

    private func lines(
        _ notes: [(HandshakeLog.Reason, SocketAddress?)]
    ) -> [CapturedLog.Line] {
        let captured = CapturedLog()
        let log = HandshakeLog(logger: captured.logger)
        for (reason, peer) in notes { log.note(reason, from: peer) }
        return captured.lines(of: Self.message)
    }

    @Test("a line names the peer, and no reason hides another")
    func reasons() throws {
        let peer = try SocketAddress(ipAddress: "192.0.2.1", port: 1234)
        let lines = lines([
            (.plainHTTP, peer), (.plainHTTP, peer), (.init("unexpected_message"), peer),
            (.timeout, nil),
        ])
        #expect(
            lines.map { $0.metadata["admin.reason"] }
                == ["plain_http", "unexpected_message", "timeout"])
        #expect(
            lines.map { $0.metadata["admin.peer"] }
                == ["192.0.2.1:1234", "192.0.2.1:1234", "unknown"])
        #expect(lines.allSatisfy { $0.level == .notice })
        #expect(lines.first?.metadata["hint"]?.contains("https://") == true)
        #expect(lines.last?.metadata["hint"] == nil)
    }

    @Test("connections without a handshake are not logged and hide no others")
    func closed() throws {
        let peer = try SocketAddress(ipAddress: "192.0.2.1", port: 1234)
        let lines = lines([(.closed, peer), (.closed, peer), (.notTLS, peer)])
        #expect(lines.map(\.level) == [.debug, .debug, .notice])
    }

    @Test(
        "the alert of a client that distrusts the certificate is explained",
        arguments: [
            "bad_packet_length", "tlsv1_alert_unknown_ca", "sslv3_alert_bad_certificate",
            "sslv3_alert_certificate_unknown", "sslv3_alert_certificate_expired",
        ])
    func distrust(word: String) {
        #expect(
            HandshakeLog.Reason(word).hint == "the client may not trust admin.tls.certificate")
    }
}
