/// Answer of `GET /readyz` while the broker is ready.
package struct ReadinessModel: Codable, Sendable, Equatable {
    /// "ready".
    package var status: String
    /// "none", "interval" or "sync".
    package var durability: String

    package init(status: String, durability: String) {
        self.status = status
        self.durability = durability
    }
}

/// Answer of `POST /v1/store/accept-loss`.
package struct AcceptLossResult: Codable, Sendable, Equatable {
    /// The accepted losses, by file.
    package var accepted: [String]

    package init(accepted: [String]) { self.accepted = accepted }
}

/// Answer of `POST /v1/backup`.
package struct BackupResult: Codable, Sendable, Equatable {
    /// The backup's folder on the broker's machine; a broker can be started with it.
    package var directory: String

    package init(directory: String) { self.directory = directory }
}

/// Answer of `DELETE /v1/clients/{id}`.
package struct DisconnectResult: Codable, Sendable, Equatable {
    package var clientID: String
    /// False when the client was offline already; its session stays either way.
    package var disconnected: Bool

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case disconnected
    }

    package init(clientID: String, disconnected: Bool) {
        self.clientID = clientID
        self.disconnected = disconnected
    }
}

/// Answer of `GET /healthz`.
package struct HealthModel: Codable, Sendable, Equatable {
    /// "ok".
    package var status: String
    package var version: String

    package init(status: String, version: String) {
        self.status = status
        self.version = version
    }
}
