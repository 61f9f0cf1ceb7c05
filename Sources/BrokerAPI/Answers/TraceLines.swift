/// One line of a live trace.
public struct TraceLine: Codable, Sendable, Equatable {
    public enum Kind: String, Codable, Sendable {
        /// A packet that the client sent.
        case received
        /// A packet for the client, at the time at which its socket was given it.
        case sent
        /// What the broker did.
        case event
        /// What the trace itself has to say: lines left out, or its end.
        case trace
    }

    /// UNIX time in milliseconds.
    public var atMs: Int64
    public var kind: Kind
    /// `nil` before CONNECT, and for what concerns no client.
    public var clientID: String?
    /// Peer address and port, if the line is about a connection.
    public var address: String?
    /// Names and figures of a packet, or the event in words. It may hold untrusted text.
    public var text: String
    /// The beginning of the payload, as text; `nil` unless payloads are asked for.
    public var payload: String?

    enum CodingKeys: String, CodingKey {
        case atMs = "at_ms"
        case kind
        case clientID = "client_id"
        case address, text, payload
    }

    public init(
        atMs: Int64, kind: Kind, clientID: String? = nil, address: String? = nil, text: String,
        payload: String? = nil
    ) {
        self.atMs = atMs
        self.kind = kind
        self.clientID = clientID
        self.address = address
        self.text = text
        self.payload = payload
    }
}

/// The lines of a trace since the last answer.
public struct TraceLines: Sendable, Equatable {
    public var lines: [TraceLine]
    /// True after the last line.
    public var isOver: Bool

    public init(lines: [TraceLine], isOver: Bool) {
        self.lines = lines
        self.isOver = isOver
    }
}
