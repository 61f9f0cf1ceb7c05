import HermesClientCore

extension HermesClient {
    /// The client's connection.
    public enum State: Hashable, Sendable {
        /// Counts from 1 since the client last had a reason to begin anew.
        case connecting(attempt: Int)
        /// `sessionPresent` is false if the broker knew nothing of this client.
        case connected(sessionPresent: Bool)
        /// The next try comes in so many milliseconds from the change to this state, and what ended
        /// the last connection or failed the last try.
        case waiting(milliseconds: Int, WaitReason, DropCause?)
        /// In the background: no connection, and no tries.
        case suspended
        /// No connection, and no tries, before ``HermesClient/start()``.
        case stopped(StopReason)
    }

    /// The reason for a wait before the next try.
    public enum WaitReason: Hashable, Sendable {
        /// One of six tries, each after a random 1 to 15 s; up to 45 s if connections end again and
        /// again within a minute.
        case retrying
        /// The quick tries have failed; now they become rarer, up to one every 5 minutes, more or less
        /// half of that. ``HermesClient/reconnectNow()`` ends the wait.
        case unreachable
        /// Another connection with this client identifier takes the session again and again.
        case takenOver
    }

    /// The reason why the client does not try any more.
    public enum StopReason: Hashable, Sendable {
        /// ``HermesClient/start()`` was never called.
        case notStarted
        /// ``HermesClient/stop()`` was called.
        case requested
        /// The broker does not speak MQTT 3.1.1.
        case unacceptableProtocolVersion
        /// The broker does not allow this client identifier.
        case identifierRejected
        /// The broker refused the credentials, new ones too.
        case credentialsRefused
    }

    /// What ended a connection, or kept it from being opened.
    public struct DropCause: Hashable, Sendable, CustomStringConvertible {
        /// The part that a program may decide by.
        public enum Kind: Hashable, Sendable {
            /// The broker, or something between, closed the connection.
            case closedByPeer
            /// The network failed.
            case networkFailed
            /// The host's name has no address.
            case nameNotFound
            /// Nothing listens at the address.
            case connectionRefused
            /// The broker is not the one that TLS was to prove: a pin, a root, a host's name.
            case untrusted
            /// TLS could not be agreed upon; a port without TLS is a common reason.
            case tlsFailed
            /// WebSocket was not granted, or a rule of it was broken; a wrong path is a common reason.
            case webSocketFailed
            /// The proxy opened no way to the broker.
            case proxyFailed
            /// Something did not come in time.
            case timedOut
            /// The broker said that it is not available (CONNACK 3), or credentials could not be had.
            case unavailable
            /// The broker broke a rule of MQTT.
            case protocolViolation
        }

        /// The part that a program may decide by.
        public let kind: Kind
        /// A sentence for a log, in a line; what could deceive a terminal is escaped.
        public let description: String
    }

    /// Something that happened, which the app may want to tell or log.
    public enum Event: Hashable, Sendable {
        /// Sequences of a channel that never came, lowest first.
        case loss(channel: String, [ClosedRange<UInt64>])
        /// The broker no longer had the session: what it had queued is gone. Subscriptions are
        /// renewed.
        case sessionLost
        /// A connection ended that was to go on, or could not be opened.
        case dropped(DropCause)
        /// A subscription that the broker had granted was refused when it was renewed.
        case renewalRefused(filter: String)
        /// The broker closed the connection, twice, upon a message with this topic: its rules do not
        /// let this client publish it. The topic's messages are held back, and one of them is tried
        /// again after 5 s, then after four times as long each time, 4 hours at most:
        /// ``HermesClient/outbox()`` lists them, ``HermesClient/retry(_:)`` and
        /// ``HermesClient/discard(_:)`` decide.
        case publishRefused(topic: String)
        /// The app has not acknowledged a message with this topic for so long, and it is the oldest of
        /// `count`. It was forgotten, or takes long; when some 20 are open the broker sends no more.
        /// Told after a minute, and again each time that the age has doubled.
        case unacknowledged(topic: String, milliseconds: Int, count: Int)
        /// So many bytes of the storage file could not be read: changes that had been stored, such as
        /// messages on their way, are missing. The file as it was found lies at the path
        /// `setAside`; `nil` if it could not be kept.
        case storageDamaged(bytes: Int, setAside: String?)
        /// The storage file cannot be written, for this reason; a full disk is the common one. The
        /// client goes on receiving and tries again every 5 s. Calls that would have to store
        /// something throw meanwhile; a kill in that time may bring messages again, with QoS 2 too.
        case storageFailed(String)
        /// The storage file could be written again, and holds everything.
        case storageRecovered
        /// So many messages of QoS 0 found the buffer of 256 full.
        case droppedAtMostOnce(count: Int)
    }
}

extension HermesClient.State {
    init(_ state: ClientState, cause: DropReason?) {
        self =
            switch state {
            case .connecting(let attempt): .connecting(attempt: attempt)
            case .connected(let sessionPresent): .connected(sessionPresent: sessionPresent)
            case .waiting(let until, let reason):
                .waiting(
                    milliseconds: Int(max(until - SystemClock.monotonicMilliseconds, 0)),
                    HermesClient.WaitReason(reason), cause.map { HermesClient.DropCause($0) })
            case .suspended: .suspended
            case .stopped(let reason): .stopped(HermesClient.StopReason(reason))
            }
    }
}

extension HermesClient.WaitReason {
    init(_ reason: WaitReason) {
        self =
            switch reason {
            case .retrying: .retrying
            case .unreachable: .unreachable
            case .takenOver: .takenOver
            }
    }
}

extension HermesClient.StopReason {
    init(_ reason: StopReason) {
        self =
            switch reason {
            case .notStarted: .notStarted
            case .requested: .requested
            case .unacceptableProtocolVersion: .unacceptableProtocolVersion
            case .identifierRejected: .identifierRejected
            case .credentialsRefused: .credentialsRefused
            }
    }
}

extension HermesClient.Event {
    init(_ event: ClientEvent) {
        self =
            switch event {
            case .loss(let channel, let ranges):
                .loss(channel: String(decoding: channel, as: UTF8.self), ranges)
            case .sessionLost: .sessionLost
            case .dropped(let reason): .dropped(HermesClient.DropCause(reason))
            case .renewalRefused(let filter):
                .renewalRefused(filter: String(decoding: filter, as: UTF8.self))
            case .publishRefused(let topic):
                .publishRefused(topic: String(decoding: topic, as: UTF8.self))
            case .unacknowledged(let topic, let milliseconds, let count):
                .unacknowledged(
                    topic: String(decoding: topic, as: UTF8.self),
                    milliseconds: Int(milliseconds), count: count)
            case .droppedAtMostOnce(let count): .droppedAtMostOnce(count: count)
            }
    }
}

extension HermesClient.StopReason {
    var sentence: String {
        switch self {
        case .notStarted: "because start() was not called"
        case .requested: "because stop() was called"
        case .unacceptableProtocolVersion: "because the broker does not speak MQTT 3.1.1"
        case .identifierRejected: "because the broker rejects the client identifier"
        case .credentialsRefused: "because the broker refuses the credentials"
        }
    }
}

extension HermesClient.DropCause {
    init(_ reason: DropReason) {
        // Words of a broker or a proxy may be in it.
        description = reason.sentence.visible
        kind =
            switch reason {
            case .closedByPeer, .resetByPeer, .writeFailed: .closedByPeer
            case .networkFailure: .networkFailed
            case .nameNotFound: .nameNotFound
            case .connectionRefused: .connectionRefused
            case .untrusted: .untrusted
            case .tlsFailed: .tlsFailed
            case .webSocketFailed: .webSocketFailed
            case .proxyFailed: .proxyFailed
            case .openTimeout, .connackTimeout, .silent, .probeFailed, .subscriptionTimeout,
                .unfinishedPacket:
                .timedOut
            case .serverUnavailable: .unavailable
            case .malformed, .violation: .protocolViolation
            }
    }
}

extension DropReason {
    fileprivate var sentence: String {
        switch self {
        case .closedByPeer: "the broker, or something between, closed the connection"
        case .resetByPeer: "the broker, or something between, reset the connection"
        case .networkFailure: "the network failed, or the broker cannot be reached"
        case .nameNotFound: "the host's name has no address"
        case .connectionRefused: "nothing listens at the broker's address and port"
        case .tlsFailed(let reason): "TLS could not be agreed upon: \(reason)"
        case .webSocketFailed(let reason): "WebSocket failed: \(reason)"
        case .proxyFailed(let reason): "the proxy opened no way to the broker: \(reason)"
        case .writeFailed: "the connection was gone when it was used"
        case .untrusted(let reason): "the broker is not trusted: \(reason)"
        case .openTimeout:
            "the connection was not open after 15 s, or 5 s with another address left"
        case .connackTimeout: "no CONNACK came within 10 s"
        case .serverUnavailable: "the broker is not available (CONNACK 3)"
        case .silent: "no PINGRESP came within 10 s"
        case .probeFailed: "no PINGRESP came within 3 s after a change of the network"
        case .subscriptionTimeout: "no SUBACK or UNSUBACK came within 30 s"
        case .unfinishedPacket: "a packet began and did not end within 120 s"
        case .malformed(let fault): "the broker sent a malformed packet: \(fault)"
        case .violation(let violation): "the broker broke a rule of MQTT: \(violation)"
        }
    }
}
