/// Answer of `GET`, `POST` and `DELETE /v1/drain`: how far the clients of a broker have been moved away.
public struct DrainStatus: Codable, Sendable, Equatable {
    public enum State: String, Codable, Sendable {
        /// Clients may connect.
        case off
        /// Connections are being closed, and new ones are refused.
        case draining
        /// No connection is left, and new ones are refused.
        case drained
    }

    /// Why a broker that is being drained is not ready.
    public static let notReadyReason =
        "draining: an operator moves the clients of this broker elsewhere"

    public var state: State
    /// Connections that are left, with those that had no CONNACK yet.
    public var connections: Int
    /// Connections that the drain has closed. `nil` without a drain, as all below; the answer that
    /// ends one has it.
    public var closed: Int?
    /// Connections to close in a second, 1 to 100,000.
    public var perSecond: Int?
    /// The start of the drain, UNIX time in milliseconds.
    public var startedAtMs: Int64?
    /// Seconds until no connection is left, at this rate; rounded up.
    public var secondsLeft: Int?
    /// Where clients of MQTT 5.0 are sent; `nil` when they are not told.
    public var serverReference: String?

    enum CodingKeys: String, CodingKey {
        case state, connections, closed
        case perSecond = "per_second"
        case startedAtMs = "started_at_ms"
        case secondsLeft = "seconds_left"
        case serverReference = "server_reference"
    }

    public init(connections: Int) {
        state = .off
        self.connections = connections
    }

    public init(
        isDrained: Bool, connections: Int, closed: Int, perSecond: Int, startedAtMs: Int64,
        serverReference: String? = nil
    ) {
        state = isDrained ? .drained : .draining
        self.connections = connections
        self.closed = closed
        self.perSecond = perSecond
        self.startedAtMs = startedAtMs
        secondsLeft = (connections + perSecond - 1) / perSecond
        self.serverReference = serverReference
    }

    /// Connections to close in a second, where nothing else is asked for.
    public static let defaultPerSecond = 100
    /// The rates that may be asked for.
    public static let rates: ClosedRange<Int> = 1...100_000
    /// Bytes of a reference to another broker.
    public static let mostReferenceBytes = 1_024

    /// True for a reference that DISCONNECT may hold: one or more `host[:port]`, or what the clients
    /// understand, without characters that nobody sees.
    public static func isReference(_ text: String) -> Bool {
        (1...mostReferenceBytes).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy {
                $0.value > 0x1F && !(0x7F...0x9F).contains($0.value)
            }
    }
}

/// The end of a drain.
public enum DrainEnd: Sendable, Equatable {
    /// Clients may connect again. The status has the number of connections closed, unless no drain
    /// was under way.
    case ended(DrainStatus)
    /// A listener cannot listen again, for this reason, so the broker is still drained.
    case cannotListen(String)
}
