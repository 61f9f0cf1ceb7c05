/// Answer of `GET /readyz` while the broker is ready.
public struct ReadinessModel: Codable, Sendable, Equatable {
    /// "ready".
    public var status: String
    /// "none", "interval" or "sync".
    public var durability: String

    public init(status: String, durability: String) {
        self.status = status
        self.durability = durability
    }
}

/// Answer of `POST /v1/store/accept-loss`.
public struct AcceptLossResult: Codable, Sendable, Equatable {
    /// The accepted losses, by file.
    public var accepted: [String]

    public init(accepted: [String]) { self.accepted = accepted }
}

/// Answer of `POST /v1/backup`.
public struct BackupResult: Codable, Sendable, Equatable {
    /// The backup's folder on the broker's machine; a broker can be started with it.
    public var directory: String

    public init(directory: String) { self.directory = directory }
}

/// Answer of `DELETE /v1/clients/{id}`.
public struct DisconnectResult: Codable, Sendable, Equatable {
    public var clientID: String
    /// False when the client was offline already; its session stays either way.
    public var disconnected: Bool

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case disconnected
    }

    public init(clientID: String, disconnected: Bool) {
        self.clientID = clientID
        self.disconnected = disconnected
    }
}

/// Answer of `GET /healthz`.
public struct HealthModel: Codable, Sendable, Equatable {
    /// "ok".
    public var status: String
    public var version: String

    public init(status: String, version: String) {
        self.status = status
        self.version = version
    }
}
