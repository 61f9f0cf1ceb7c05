import MQTTCodec

/// Decides what one network connection may do next; performs no I/O and reads no clock.
/// ```
///                CONNECT                 verified                opened
/// awaitingConnect ──────> authenticating ────────> opening ────────────> active ──> closed
///        │                      │ refused          │  ^  │ (commit of what        │
///        └── anything else ─────┴──── closed <─────│──│──┘  CONNACK speaks of)    └ DISCONNECT, violation
///                                                  v  │
///                                                delayed (a take-over that is damped)
/// ```
/// While a client waits for its password check, for its turn to take over or for the commit, its further
/// input is held back: the specification lets it send before CONNACK, and nothing of it may count before
/// it is accepted.
public struct ConnectionMachine: Sendable, BitwiseCopyable {
    private enum State: UInt8, BitwiseCopyable {
        case awaitingConnect
        case authenticating
        case opening
        case delayed
        case active
        case closed
    }

    private var state = State.awaitingConnect

    public init() {}

    public enum OnConnect: Hashable, Sendable {
        case authenticate
        /// CONNACK with this code, then close [MQTT-3.2.2-5].
        case refuse(Connack.ReturnCode)
        case close(ProtocolViolation)
        case ignore
    }

    public enum OnPacket: Hashable, Sendable {
        case process
        case close(ProtocolViolation)
        case ignore
    }

    public enum OnVerdict: Hashable, Sendable {
        case open
        case refuse(Connack.ReturnCode)
        case ignore
    }

    /// Whether input must wait for the password check, a take-over or the commit.
    public var holdsInput: Bool {
        switch state {
        case .authenticating, .opening, .delayed: true
        case .awaitingConnect, .active, .closed: false
        }
    }
    /// Whether it is not known yet who this is.
    public var isUnknown: Bool { state == .awaitingConnect || state == .authenticating }
    public var isDelayed: Bool { state == .delayed }
    public var isActive: Bool { state == .active }
    public var isAwaitingConnect: Bool { state == .awaitingConnect }
    public var isClosed: Bool { state == .closed }

    /// A CONNECT arrived; `identifierCount` is the size of its client identifier in bytes.
    public mutating func receive(
        _ connect: Connect, identifierCount: Int
    ) -> OnConnect {
        switch state {
        case .awaitingConnect:
            // An empty identifier asks for one of ours, which only a clean session may
            // [MQTT-3.1.3-6] [MQTT-3.1.3-8]; 3.1 has no empty identifiers.
            if identifierCount == 0, !connect.cleanSession || connect.version == .v3_1 {
                state = .closed
                return .refuse(.identifierRejected)
            }
            state = .authenticating
            return .authenticate
        case .authenticating, .opening, .delayed, .active:
            // One network connection carries exactly one CONNECT [MQTT-3.1.0-2].
            state = .closed
            return .close(.secondConnect)
        case .closed:
            return .ignore
        }
    }

    /// Any packet but CONNECT arrived.
    public mutating func receive(_ type: PacketType) -> OnPacket {
        switch state {
        case .awaitingConnect, .authenticating, .opening, .delayed:
            state = .closed
            return .close(.firstPacketNotConnect)
        case .active:
            switch type {
            case .publish, .puback, .pubrec, .pubrel, .pubcomp, .subscribe, .unsubscribe, .pingreq:
                return .process
            case .disconnect:
                state = .closed
                return .process
            case .connect:
                state = .closed
                return .close(.secondConnect)
            case .connack, .suback, .unsuback, .pingresp:
                state = .closed
                return .close(.packetOnlyServersSend)
            }
        case .closed:
            return .ignore
        }
    }

    /// The user name and password were checked; `nil` accepts.
    public mutating func authenticated(_ refusal: Connack.ReturnCode?) -> OnVerdict {
        switch state {
        case .authenticating:
            if let refusal {
                state = .closed
                return .refuse(refusal)
            }
            state = .opening
            return .open
        case .awaitingConnect, .opening, .delayed, .active, .closed:
            return .ignore
        }
    }

    /// What CONNACK speaks of is stored: it leaves, and the client's input counts. False when the
    /// connection closed meanwhile.
    public mutating func opened() -> Bool {
        switch state {
        case .opening:
            state = .active
            return true
        case .awaitingConnect, .authenticating, .delayed, .active, .closed:
            return false
        }
    }

    /// Its session is fought over: it may not take over yet.
    public mutating func delay() {
        precondition(state == .opening, "a take-over delayed in state \(state)")
        state = .delayed
    }

    /// It may ask again. False when the connection closed meanwhile.
    public mutating func endDelay() -> Bool {
        switch state {
        case .delayed:
            state = .opening
            return true
        case .awaitingConnect, .authenticating, .opening, .active, .closed:
            return false
        }
    }

    /// The session cannot be opened (a limit): CONNACK with a code, then close.
    public mutating func close() { state = .closed }
}

/// A packet that is well formed and not allowed where it stands. The connection closes [MQTT-4.8.0-1].
public enum ProtocolViolation: Error, Hashable, Sendable, BitwiseCopyable {
    case firstPacketNotConnect
    case secondConnect
    case packetOnlyServersSend
    case malformed(MalformedPacket)

    /// The normative statement, or section, of MQTT 3.1.1 that is broken.
    public var statement: String {
        switch self {
        case .firstPacketNotConnect: "MQTT-3.1.0-1"
        case .secondConnect: "MQTT-3.1.0-2"
        case .packetOnlyServersSend: "section 2.2.1"
        case .malformed(let packet): packet.statement
        }
    }

    /// What was wrong, for a log.
    public var explanation: String {
        switch self {
        case .firstPacketNotConnect: "the first packet was not CONNECT"
        case .secondConnect: "a second CONNECT"
        case .packetOnlyServersSend: "a packet that only a server sends"
        case .malformed(let packet): packet.explanation
        }
    }
}
