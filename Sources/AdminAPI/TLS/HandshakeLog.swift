import Addresses
import Logging
import NIOCore
import OperatorLog

/// Says in the log which TLS handshakes of a listener failed, and what can be done about it: one line
/// a second for each reason, so that none hides another and strangers do not fill the disk.
final class HandshakeLog: Sendable {
    /// A word of ours or of BoringSSL's.
    struct Reason: Equatable, Sendable {
        let word: String

        init(_ word: String) {
            self.word = word
        }

        static let plainHTTP = Self("plain_http")
        static let plainMQTT = Self("plain_mqtt")
        /// Neither of these, nor a handshake.
        static let notTLS = Self("not_tls")
        static let timeout = Self("timeout")
        /// The client went away, or had only looked whether the port is open.
        static let closed = Self("closed")

        /// What an operator can do about it; `nil` when the word has to do.
        var hint: String? {
            switch word {
            case "plain_http": "this port speaks HTTPS; write https:// in the client's URL"
            case "plain_mqtt": "this port speaks HTTPS; MQTT has ports of its own, see listeners"
            // A client of TLS 1.3 sends its alert unprotected, where a protected one is expected.
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
        // Scanners and health checks that only connect are no news.
        guard reason != .closed else {
            logger.debug("Admin TLS handshake failed", metadata: metadata)
            return
        }
        if let hint = reason.hint { metadata[LogKeys.hint] = "\(hint)" }
        lines.write(.notice, "Admin TLS handshake failed", kind: reason.word, metadata)
    }
}
