/// The newest trouble of a client: what an operator looks for who knows no name.
///
/// Troubles are refusals, denials, limits and losses, and ends of connections that the client neither
/// chose nor its network brought about.
public struct ClientTrouble: Codable, Sendable, Equatable {
    public var clientID: String
    public var event: ClientEvent

    private enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
    }

    public init(clientID: String, event: ClientEvent) {
        self.clientID = clientID
        self.event = event
    }

    public init(from decoder: any Decoder) throws {
        clientID = try decoder.container(keyedBy: CodingKeys.self)
            .decode(String.self, forKey: .clientID)
        event = try ClientEvent(from: decoder)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(clientID, forKey: .clientID)
        try event.encode(to: encoder)
    }
}

/// Answer of `GET /v1/troubles`.
public struct TroubleList: Codable, Sendable, Equatable {
    /// The newest first, one of each client.
    public var troubles: [ClientTrouble]

    public init(troubles: [ClientTrouble]) { self.troubles = troubles }
}

extension ClientEvent {
    /// Kinds of events that may be troubles.
    public static let troubleKinds: [Kind] = [
        .refused, .denied, .lostMessages, .filterRefused, .disconnected, .flapping,
    ]

    /// True for a trouble of this kind and reason; see ``ClientTrouble``.
    public static func isTrouble(_ kind: Kind, reason: String) -> Bool {
        switch kind {
        case .refused, .denied, .lostMessages, .filterRefused, .flapping: true
        case .connected, .expired, .sessionEnded, .deviceGone, .deviceSetAside: false
        case .disconnected:
            switch reason {
            case "taken_over", "protocol_violation", "output_limit", "memory_shortage",
                "publish_denied", "store_failure":
                true
            default: false
            }
        }
    }
}
