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
package struct ConnectionMachine: BitwiseCopyable {
    private enum State: BitwiseCopyable {
        /// `certificateUser` is the user name that the client's TLS certificate proved.
        case awaitingConnect(certificateUser: SharedBytes?)
        /// The shard processes the CONNECT; this state ends within the same call.
        case opening
        /// Another thread checks the user name and password.
        case authenticating(HeldConnect)
        /// Two clients compete for the client identifier, and this one must wait to take it over.
        case delayed(HeldConnect)
        /// CONNACK waits until the session is stored.
        case committing(sessionPresent: Bool)
        /// CONNACK waits until the store has read the first part of the session's queue.
        case loading(sessionPresent: Bool)
        /// CONNACK with code 0 is in the output. `isThrottled` means that the output is full, so
        /// queued messages wait until it drains.
        case active(isThrottled: Bool)
        /// The connection closes at the end of the turn; further packets are ignored.
        case ending(wasOpen: Bool)
    }

    private var state = State.awaitingConnect(certificateUser: nil)

    package enum OnConnect {
        /// Process the CONNECT. The caller takes over the reference to the user name that the
        /// client's TLS certificate proved; `nil` without one.
        case authenticate(certificateUser: SharedBytes?)
        /// Send CONNACK with this code, then close [MQTT-3.2.2-5].
        case refuse(Connack.ReturnCode)
        case close(ProtocolViolation)
        case ignore
    }

    package enum OnPacket: Hashable {
        case process
        case close(ProtocolViolation)
        case ignore
    }

    // MARK: Questions

    /// True while the client's packets are held back until CONNACK.
    package var holdsInput: Bool {
        switch state {
        case .opening, .authenticating, .delayed, .committing, .loading: true
        case .awaitingConnect, .active, .ending: false
        }
    }

    /// True from CONNACK with code 0 until the connection is closed.
    package var isOpen: Bool {
        if case .active = state { return true }
        if case .ending(let wasOpen) = state { return wasOpen }
        return false
    }

    /// True while the client's packets are processed and messages may be sent to it.
    package var isActive: Bool {
        if case .active = state { true } else { false }
    }

    /// True until a CONNECT has been accepted: before it, while its password is checked, or while its
    /// take-over is delayed.
    package var isNewcomer: Bool {
        switch state {
        case .awaitingConnect, .authenticating, .delayed: true
        case .opening, .committing, .loading, .active, .ending: false
        }
    }

    package var isAwaitingConnect: Bool {
        if case .awaitingConnect = state { true } else { false }
    }

    /// The CONNECT whose password is being checked; `nil` for none. It is not passed on.
    package var checkedConnect: HeldConnect? {
        if case .authenticating(let connect) = state { connect } else { nil }
    }

    package var isDelayed: Bool {
        if case .delayed = state { true } else { false }
    }

    package var isEnding: Bool {
        if case .ending = state { true } else { false }
    }

    // MARK: Before CONNACK

    /// Sets the user name proved by the client's TLS certificate. Takes over the reference.
    package mutating func identify(_ userName: SharedBytes, pool: BytePool) {
        guard case .awaitingConnect(let former) = state else {
            userName.release(in: pool)
            return
        }
        former?.release(in: pool)
        state = .awaitingConnect(certificateUser: userName)
    }

    /// Handles a CONNECT; `identifierCount` is the size of its client identifier in bytes. After
    /// ``OnConnect/refuse(_:)`` and ``OnConnect/close(_:)`` the caller ends the connection.
    package mutating func receive(_ connect: Connect, identifierCount: Int) -> OnConnect {
        switch state {
        case .awaitingConnect(let certificateUser):
            // An empty identifier asks the server for one, which in 3.1.1 only a clean session may
            // [MQTT-3.1.3-6] [MQTT-3.1.3-8]; 3.1 has no empty identifiers.
            if identifierCount == 0, connect.version != .v5,
                !connect.cleanSession || connect.version == .v3_1
            {
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

    /// Keeps the CONNECT during its password check. Takes over the reference.
    package mutating func awaitPasswordCheck(_ connect: HeldConnect) {
        guard case .opening = state else {
            preconditionFailure("a password is checked in state \(state)")
        }
        state = .authenticating(connect)
    }

    /// Keeps the CONNECT until its delayed take-over. Takes over the reference.
    package mutating func delay(_ connect: HeldConnect) {
        guard case .opening = state else {
            preconditionFailure("a take-over is delayed in state \(state)")
        }
        state = .delayed(connect)
    }

    /// Ends the password check. Passes the reference on; `nil` when the connection has ended.
    package mutating func endPasswordCheck() -> HeldConnect? {
        guard case .authenticating(let connect) = state else { return nil }
        state = .opening
        return connect
    }

    /// Ends the delay of a take-over, like ``endPasswordCheck()``.
    package mutating func endDelay() -> HeldConnect? {
        guard case .delayed(let connect) = state else { return nil }
        state = .opening
        return connect
    }

    /// The client has its session; CONNACK waits until the session is stored.
    package mutating func attached(sessionPresent: Bool) {
        guard case .opening = state else {
            preconditionFailure("a session is attached in state \(state)")
        }
        state = .committing(sessionPresent: sessionPresent)
    }

    /// The session is stored. Returns the session present flag for CONNACK, or `nil` if the
    /// connection has ended or `isLoading`: CONNACK then waits for a part of the queue.
    package mutating func committed(isLoading: Bool) -> Bool? {
        guard case .committing(let sessionPresent) = state else { return nil }
        state = isLoading ? .loading(sessionPresent: sessionPresent) : .active(isThrottled: false)
        return isLoading ? nil : sessionPresent
    }

    /// The first part of the queue has arrived. Returns the session present flag for CONNACK, or
    /// `nil` if CONNACK does not wait for it.
    package mutating func loaded() -> Bool? {
        guard case .loading(let sessionPresent) = state else { return nil }
        state = .active(isThrottled: false)
        return sessionPresent
    }

    // MARK: While active

    /// Handles any packet but CONNECT. After ``OnPacket/close(_:)`` the caller ends the connection.
    package func receive(_ type: PacketType) -> OnPacket {
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

    /// Notes that the output is full, or has drained. False without a change, or when not active.
    package mutating func setThrottled(_ isThrottled: Bool) -> Bool {
        guard case .active(!isThrottled) = state else { return false }
        state = .active(isThrottled: isThrottled)
        return true
    }

    // MARK: The end

    /// Ends the connection with the turn; false when it was ending already.
    package mutating func end(releasingIn pool: BytePool) -> Bool {
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
