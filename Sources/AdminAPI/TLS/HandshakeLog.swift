import Addresses
import Logging
import NIOCore
import OperatorLog

/// Logs failed TLS handshakes of a listener, with advice: one line a second for each reason, so
/// that none hides another and strangers cannot fill the disk.
final class HandshakeLog: Sendable {
    /// A reason of Hermes or of BoringSSL.
    struct Reason: Equatable, Sendable {
        let word: String

        init(_ word: String) {
            self.word = word
        }

        static let plainHTTP = Self("plain_http")
        static let plainMQTT = Self("plain_mqtt")
        /// Neither HTTP nor MQTT nor TLS.
        static let notTLS = Self("not_tls")
        static let timeout = Self("timeout")
        /// The client closed, perhaps after only probing the port.
        static let closed = Self("closed")

        /// Advice for the operator; `nil` without any.
        var hint: String? {
            switch word {
            case "plain_http": "this port speaks HTTPS; write https:// in the client's URL"
            case "plain_mqtt": "this port speaks HTTPS; MQTT has ports of its own, see listeners"
            // A TLS 1.3 client sends its alert unprotected, where a protected one is expected.
            case "bad_packet_length": Self.distrust
            case let word
            where word.hasSuffix("alert_unknown_ca") || word.hasSuffix("alert_bad_certificate")
                || word.hasSuffix("alert_certificate_unknown")
                || word.hasSuffix("alert_certificate_expired"):
                Self.distrust
            case "no_common_signature_algorithms":
                "the client does not know the kind of key that admin.tls.key is; most know RSA and P-256"
            default: nil
            }
        }

        private static let distrust = "the client may not trust admin.tls.certificate"
    }

    private let logger: Logger
    private let lines: FloodLog

    init(logger: Logger) {
        self.logger = logger
        lines = FloodLog(logger: logger)
    }

    func note(_ reason: Reason, from peer: SocketAddress?) {
        var metadata: Logger.Metadata = [
            LogKeys.adminReason: "\(reason.word)",
            LogKeys.adminPeer: "\(IPAddress.text(peer))",
        ]
        // Port scanners and health checks only connect.
        guard reason != .closed else {
            logger.debug("Admin TLS handshake failed", metadata: metadata)
            return
        }
        if let hint = reason.hint { metadata[LogKeys.hint] = "\(hint)" }
        lines.write(.notice, "Admin TLS handshake failed", kind: reason.word, metadata)
    }
}
