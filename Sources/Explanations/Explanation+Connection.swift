import BrokerAPI
import PlainText

/// What is known of a client's connection, and why it ended.
extension Explanation {
    func state(_ detail: ClientDetail) -> [String] {
        let client = detail.summary
        var lines: [String] = []
        if client.connected {
            var line = "It is connected since \(span(client.sinceMs))"
            if let address = client.address { line += ", from \(address)" }
            if let age = detail.lastPacketMsAgo {
                line += "; its last packet came \(Spans.span(seconds: age / 1_000)) ago"
            }
            lines.append(line + ".")
        } else {
            var line = "It is offline since \(span(client.sinceMs))"
            if let reason = detail.lastDisconnectReason {
                let end = history.events.first { $0.kind == .disconnected }
                line += ": \(Self.words(ofEnd: reason, end?.detail))"
            } else {
                line += "; why it went was forgotten when the broker stopped"
            }
            lines.append(line + ".")
        }
        if client.cleanSession {
            lines.append("Its session is clean: what comes while it is offline is lost.")
        }
        let lately = history.events.filter { now - $0.lastMs < 3_600_000 }
        let takenOver = lately.filter { $0.kind == .disconnected && $0.reason == "taken_over" }
        let connects = lately.filter { $0.kind == .connected }
        if let fight = detail.takeOvers {
            lines.append(
                "Two peers use this identifier and take it from each other (\(fight.count) times): "
                    + "\(fight.peers.joined(separator: " and ")). Give each its own identifier. One that "
                    + "comes back waits \(Spans.span(seconds: fight.delayMs / 1_000)) before it takes over"
                    + "\(fight.waiting.map { "; \($0) waits now" } ?? "").")
        } else if takenOver.count >= 3, let oldest = takenOver.last {
            lines.append(
                "Newer connections with its identifier ended \(takenOver.count) of its last ones "
                    + "within \(span(oldest.lastMs)): two programs use the identifier, or its app "
                    + "connects again before its former connection is closed, as after a change of "
                    + "networks.")
        } else if connects.count >= 3, let oldest = connects.last {
            let faults = lately.filter {
                $0.kind == .disconnected && $0.reason != "taken_over"
                    && ClientEvent.isTrouble($0.kind, reason: $0.reason)
            }
            lines.append(
                "It connected \(connects.count) times within \(span(oldest.lastMs)): "
                    + (faults.first.map { Self.words(ofEnd: $0.reason, $0.detail) + "." }
                        ?? "its network or its app lets connections go."))
        }
        return lines
    }

    /// Why a connection ended.
    static func words(ofEnd reason: String, _ detail: String? = nil) -> String {
        switch reason {
        case "disconnect": "it said goodbye (DISCONNECT)"
        case "keep_alive":
            "it was silent for longer than one and a half times its keep alive, so its network or "
                + "phone was gone"
        case "peer_closed": "its side closed the connection without DISCONNECT"
        case "network_error": "the connection broke"
        case "taken_over": "another connection with its identifier took over"
        case "protocol_violation":
            detail.map { "it sent what ends a connection: \($0)" }
                ?? "it broke a rule of MQTT (the log says which)"
        case "publish_denied": "it published to a topic that the access rules deny"
        case "administrator": "an operator closed the connection"
        case "draining": "an operator drained the broker, so that its clients go elsewhere"
        case "banned": "an operator banned it"
        case "shutdown": "the broker stopped"
        case "memory_shortage": "memory was short, and it did not read its messages"
        case "output_limit": "it did not read what was sent to it (limits.output_bytes)"
        case "certificate_revoked": "its certificate counts no more"
        case "token_expired": "the token by which it had connected ended"
        case "store_failure": "the store could not read its queue"
        default: "the connection ended by \(reason)"
        }
    }
}
