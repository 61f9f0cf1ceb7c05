/// A listener of MQTT clients, as it was opened at the start.
public struct ListenerModel: Codable, Sendable, Equatable {
    /// What a listener asks of WebSocket.
    public struct WebSocket: Codable, Sendable, Equatable {
        /// The path of the request, from `/`.
        public var path: String
        /// Origins whose pages may connect.
        public var origins: [String]

        public init(path: String, origins: [String]) {
            self.path = path
            self.origins = origins
        }
    }

    /// With the actual port: `127.0.0.1:1883`, `[::1]:1883`.
    public var address: String
    public var tls: Bool
    /// `nil` for a listener whose connections carry packets without WebSocket.
    public var webSocket: WebSocket?

    enum CodingKeys: String, CodingKey {
        case address, tls
        case webSocket = "websocket"
    }

    public init(address: String, tls: Bool, webSocket: WebSocket? = nil) {
        self.address = address
        self.tls = tls
        self.webSocket = webSocket
    }
}

/// Answer of `GET /v1/listeners`.
public struct ListenerList: Codable, Sendable, Equatable {
    /// In the order of the configuration.
    public var listeners: [ListenerModel]

    public init(listeners: [ListenerModel]) { self.listeners = listeners }
}
