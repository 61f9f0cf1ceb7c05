import MQTTCodec
import MQTTCore
import Structures

/// Decides what one network connection may do next; performs no I/O and reads no clock.
/// ```
///                           password check
///                  ┌──── authenticating ◀───┐
///                  ▼                        │
/// awaitingConnect ─CONNECT─▶ opening ───────┤          commit             queue
///                  ▲                        ├─▶ committing ──▶ loading ──▶ active
///                  └──────── delayed ◀──────┘       │                        ▲
///                     take-over is damped           └── nothing to load ─────┘
/// any state ──▶ ending: DISCONNECT, violation, limit, refusal, loss of the network
/// ```
/// Between CONNECT and CONNACK the client's further packets are held back: the specification lets a client
/// send them early, and none of them may count before the client is accepted.
struct ConnectionMachine: BitwiseCopyable {
    private enum State: BitwiseCopyable {
        /// `certificateUser` is the user name that the client's TLS certificate proved.
        case awaitingConnect(certificateUser: SharedBytes?)
        /// The shard judges the CONNECT; this state ends within the call that began it.
        case opening
        /// The user name and password are checked on another thread.
        case authenticating(HeldConnect)
        /// Two clients fight over the client identifier, and this one may not take over yet.
        case delayed(HeldConnect)
        /// CONNACK waits until the session that it speaks of is stored.
        case committing(sessionPresent: Bool)
        /// CONNACK waits for the first part of the session's queue, which the store reads.
        case loading(sessionPresent: Bool)
        /// CONNACK has left with code 0. A throttled connection's output is full, so that its queued
        /// messages wait until the output has drained.
        case active(isThrottled: Bool)
        /// The connection closes at the end of the turn; nothing that the client sends counts any more.
        case ending(wasOpen: Bool)
    }

    private var state = State.awaitingConnect(certificateUser: nil)

    enum OnConnect {
        /// Judge the CONNECT. The caller takes over the reference to the bytes of the user name that the
        /// client's certificate proved; `nil` without one.
        case authenticate(certificateUser: SharedBytes?)
        /// Send CONNACK with this code, then close [MQTT-3.2.2-5].
        case refuse(Connack.ReturnCode)
        case close(ProtocolViolation)
        case ignore
    }

    enum OnPacket: Hashable {
        case process
        case close(ProtocolViolation)
        case ignore
    }

    // MARK: Questions

    /// Whether the client's packets are held back until CONNACK.
    var holdsInput: Bool {
        switch state {
        case .opening, .authenticating, .delayed, .committing, .loading: true
        case .awaitingConnect, .active, .ending: false
        }
    }

    /// Whether CONNACK has left with code 0, and the connection has not been closed yet.
    var isOpen: Bool {
        switch state {
        case .active: true
        case .ending(let wasOpen): wasOpen
        case .awaitingConnect, .opening, .authenticating, .delayed, .committing, .loading: false
        }
    }

    /// Whether packets of the client count and messages may be sent to it.
    var isActive: Bool {
        if case .active = state { true } else { false }
    }

    /// Whether it is not known yet which client this is.
    var isUnknown: Bool {
        switch state {
        case .awaitingConnect, .authenticating: true
        case .opening, .delayed, .committing, .loading, .active, .ending: false
        }
    }

    var isAwaitingConnect: Bool {
        if case .awaitingConnect = state { true } else { false }
    }

    var isDelayed: Bool {
        if case .delayed = state { true } else { false }
    }

    var isEnding: Bool {
        if case .ending = state { true } else { false }
    }

    // MARK: Before CONNACK

    /// The client's TLS certificate proved this user name. The machine takes over the reference.
    mutating func identify(_ userName: SharedBytes, pool: BytePool) {
        guard case .awaitingConnect(let former) = state else {
            userName.release(in: pool)
            return
        }
        former?.release(in: pool)
        state = .awaitingConnect(certificateUser: userName)
    }

    /// A CONNECT arrived; `identifierCount` is the size of its client identifier in bytes. After
    /// ``OnConnect/refuse(_:)`` and ``OnConnect/close(_:)`` the caller ends the connection.
    mutating func receive(_ connect: Connect, identifierCount: Int) -> OnConnect {
        switch state {
        case .awaitingConnect(let certificateUser):
            // An empty identifier asks the server for one, which only a clean session may
            // [MQTT-3.1.3-6] [MQTT-3.1.3-8]; 3.1 has no empty identifiers.
            if identifierCount == 0, !connect.cleanSession || connect.version == .v3_1 {
                return .refuse(.identifierRejected)
            }
            state = .opening
            return .authenticate(certificateUser: certificateUser)
        case .opening, .authenticating, .delayed, .committing, .loading, .active:
            // One network connection carries exactly one CONNECT [MQTT-3.1.0-2].
            return .close(.secondConnect)
        case .ending:
            return .ignore
        }
    }

    /// The CONNECT waits for its password check. The machine takes over the reference.
    mutating func awaitPasswordCheck(_ connect: HeldConnect) {
        guard case .opening = state else {
            preconditionFailure("a password is checked in state \(state)")
        }
        state = .authenticating(connect)
    }

    /// The CONNECT waits for its turn to take over. The machine takes over the reference.
    mutating func delay(_ connect: HeldConnect) {
        guard case .opening = state else {
            preconditionFailure("a take-over is delayed in state \(state)")
        }
        state = .delayed(connect)
    }

    /// The password has been checked: the CONNECT is judged further. `nil` when the connection has ended
    /// meanwhile; else the caller takes over the reference.
    mutating func endPasswordCheck() -> HeldConnect? {
        guard case .authenticating(let connect) = state else { return nil }
        state = .opening
        return connect
    }

    /// The delay of a take-over has ended, as ``endPasswordCheck()``.
    mutating func endDelay() -> HeldConnect? {
        guard case .delayed(let connect) = state else { return nil }
        state = .opening
        return connect
    }

    /// The client has its session. CONNACK waits until the session is stored.
    mutating func attached(sessionPresent: Bool) {
        guard case .opening = state else {
            preconditionFailure("a session is attached in state \(state)")
        }
        state = .committing(sessionPresent: sessionPresent)
    }

    /// What CONNACK speaks of is stored; with `isLoading` it waits for a part of the queue now. Returns what
    /// CONNACK says of the session when it leaves at once; `nil` when it waits or the connection has ended.
    mutating func committed(isLoading: Bool) -> Bool? {
        guard case .committing(let sessionPresent) = state else { return nil }
        state = isLoading ? .loading(sessionPresent: sessionPresent) : .active(isThrottled: false)
        return isLoading ? nil : sessionPresent
    }

    /// The first part of the queue has come. Returns what CONNACK says of the session; `nil` when CONNACK
    /// does not wait for a part of the queue.
    mutating func loaded() -> Bool? {
        guard case .loading(let sessionPresent) = state else { return nil }
        state = .active(isThrottled: false)
        return sessionPresent
    }

    // MARK: While active

    /// Any packet but CONNECT arrived. After ``OnPacket/close(_:)`` the caller ends the connection.
    func receive(_ type: PacketType) -> OnPacket {
        switch state {
        case .awaitingConnect, .opening, .authenticating, .delayed, .committing, .loading:
            return .close(.firstPacketNotConnect)
        case .active:
            switch type {
            case .publish, .puback, .pubrec, .pubrel, .pubcomp, .subscribe, .unsubscribe,
                .pingreq, .disconnect:
                return .process
            case .connect: return .close(.secondConnect)
            case .connack, .suback, .unsuback, .pingresp: return .close(.packetOnlyServersSend)
            }
        case .ending:
            return .ignore
        }
    }

    /// The output is full, or has drained. False when it was so before, or the connection is not active.
    mutating func setThrottled(_ isThrottled: Bool) -> Bool {
        guard case .active(!isThrottled) = state else { return false }
        state = .active(isThrottled: isThrottled)
        return true
    }

    // MARK: The end

    /// The connection closes at the end of the turn; false when that was decided before.
    mutating func end(releasingIn pool: BytePool) -> Bool {
        switch state {
        case .ending: return false
        case .awaitingConnect(let certificateUser): certificateUser?.release(in: pool)
        case .authenticating(let connect), .delayed(let connect): connect.release(in: pool)
        case .opening, .committing, .loading, .active: break
        }
        state = .ending(wasOpen: isActive)
        return true
    }
}
