import MQTTCodec

/// Decides what one network connection may do next; performs no I/O and reads no clock.
/// ```
///                CONNECT                 accepted           session stored
/// awaitingConnect ──────> authenticating ────────> opening ────────────> active ──> closed
///        │                      │ refused          │  ^                    DISCONNECT, violation
///        └── any other packet ──┴──> closed        v  │
///                                                delayed (by the damper of take-overs)
/// ```
/// Input that arrives in `authenticating`, `opening` or `delayed` is held back: a client may send
/// packets before CONNACK, but none of them may have an effect before the client is accepted.
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

    /// The answer to CONNECT.
    public enum OnConnect: Hashable, Sendable {
        case authenticate
        /// Send CONNACK with this code, then close the connection [MQTT-3.2.2-5].
        case refuse(Connack.ReturnCode)
        case close(ProtocolViolation)
        case ignore
    }

    /// The answer to any other packet.
    public enum OnPacket: Hashable, Sendable {
        case process
        case close(ProtocolViolation)
        case ignore
    }

    /// The answer to the result of the password check.
    public enum OnVerdict: Hashable, Sendable {
        case open
        case refuse(Connack.ReturnCode)
        case ignore
    }

    /// True while input must wait for the password check, the damper of take-overs or the commit of
    /// the session.
    public var holdsInput: Bool {
        switch state {
        case .authenticating, .opening, .delayed: true
        case .awaitingConnect, .active, .closed: false
        }
    }
    /// True until user name and password have been checked, so that nothing proves yet who the
    /// client is.
    public var isUnknown: Bool { state == .awaitingConnect || state == .authenticating }
    public var isDelayed: Bool { state == .delayed }
    public var isActive: Bool { state == .active }
    public var isAwaitingConnect: Bool { state == .awaitingConnect }
    public var isClosed: Bool { state == .closed }

    /// Handles a CONNECT; `identifierCount` is the size of its client identifier in bytes.
    public mutating func receive(
        _ connect: Connect, identifierCount: Int
    ) -> OnConnect {
        switch state {
        case .awaitingConnect:
            // With an empty client identifier the broker chooses one, which is allowed only for a
            // clean session [MQTT-3.1.3-6] [MQTT-3.1.3-8]. MQTT 3.1 has no empty client
            // identifiers.
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

    /// Handles any packet but CONNECT.
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

    /// Handles the result of the password check: `nil` accepts the client, a code refuses it.
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

    /// The session is stored, so CONNACK is sent and the client's input is processed from now on.
    /// False when the connection closed meanwhile.
    public mutating func opened() -> Bool {
        switch state {
        case .opening:
            state = .active
            return true
        case .awaitingConnect, .authenticating, .delayed, .active, .closed:
            return false
        }
    }

    /// Clients take this session over from each other too often, so this take-over has to wait.
    public mutating func delay() {
        precondition(state == .opening, "a take-over delayed in state \(state)")
        state = .delayed
    }

    /// The wait of a damped take-over has passed, so the client may try again. False when the
    /// connection closed meanwhile.
    public mutating func endDelay() -> Bool {
        switch state {
        case .delayed:
            state = .opening
            return true
        case .awaitingConnect, .authenticating, .opening, .active, .closed:
            return false
        }
    }

    /// Closes the connection for a reason outside the machine, such as a limit that keeps the
    /// session from being opened.
    public mutating func close() { state = .closed }
}

/// A well-formed packet that is not allowed in the connection's state. The broker closes the
/// connection [MQTT-4.8.0-1].
public enum ProtocolViolation: Error, Hashable, Sendable, BitwiseCopyable {
    case firstPacketNotConnect
    case secondConnect
    case packetOnlyServersSend
    case malformed(MalformedPacket)

    /// The rule that is broken: an id of a normative statement or a section of MQTT 3.1.1.
    public var statement: String {
        switch self {
        case .firstPacketNotConnect: "MQTT-3.1.0-1"
        case .secondConnect: "MQTT-3.1.0-2"
        case .packetOnlyServersSend: "section 2.2.1"
        case .malformed(let packet): packet.statement
        }
    }

    /// The fault in words, for a log line.
    public var explanation: String {
        switch self {
        case .firstPacketNotConnect: "the first packet was not CONNECT"
        case .secondConnect: "a second CONNECT"
        case .packetOnlyServersSend: "a packet that only a server sends"
        case .malformed(let packet): packet.explanation
        }
    }
}
