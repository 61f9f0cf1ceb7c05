import HermesClientCore

extension HermesClient {
    /// The client's connection.
    public enum State: Hashable, Sendable {
        /// Counts from 1 since the client last had a reason to begin anew.
        case connecting(attempt: Int)
        /// `sessionPresent` is false if the broker knew nothing of this client.
        case connected(sessionPresent: Bool)
        /// The next try comes in so many milliseconds from the change to this state.
        case waiting(milliseconds: Int, WaitReason)
        /// In the background: no connection, and no tries.
        case suspended
        /// No connection, and no tries, before ``HermesClient/start()``.
        case stopped(StopReason)
    }

    /// The reason for a wait before the next try.
    public enum WaitReason: Hashable, Sendable {
        /// One of six tries, each after a random 1 to 15 s.
        case retrying
        /// The quick tries have failed; now one comes every 5 minutes, more or less half of that.
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
        /// The storage could not be written, for this reason.
        case storageFailed(String)
    }

    /// Something that happened, which the app may want to tell or log.
    public enum Event: Hashable, Sendable {
        /// Sequences of a channel that never came, lowest first.
        case loss(channel: String, [ClosedRange<UInt64>])
        /// The broker no longer had the session: what it had queued is gone. Subscriptions are
        /// renewed.
        case sessionLost
        /// A connection ended that was to go on; a sentence tells why.
        case dropped(String)
        /// A subscription that the broker had granted was refused when it was renewed.
        case renewalRefused(filter: String)
        /// So many messages of QoS 0 found the buffer of 256 full.
        case droppedAtMostOnce(count: Int)
    }
}

extension HermesClient.State {
    init(_ state: ClientState) {
        self =
            switch state {
            case .connecting(let attempt): .connecting(attempt: attempt)
            case .connected(let sessionPresent): .connected(sessionPresent: sessionPresent)
            case .waiting(let until, let reason):
                .waiting(
                    milliseconds: Int(max(until - SystemClock.monotonicMilliseconds, 0)),
                    HermesClient.WaitReason(reason))
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
            case .dropped(let reason): .dropped(reason.sentence)
            case .renewalRefused(let filter):
                .renewalRefused(filter: String(decoding: filter, as: UTF8.self))
            case .droppedAtMostOnce(let count): .droppedAtMostOnce(count: count)
            }
    }
}

extension DropReason {
    fileprivate var sentence: String {
        switch self {
        case .closedByPeer: "the broker, or something between, closed the connection"
        case .networkFailure: "the network failed, or the broker cannot be reached"
        case .writeFailed: "the connection was gone when something was written"
        case .untrusted(let reason): "the broker is not trusted: \(reason)"
        case .openTimeout: "the connection was not open after 15 s"
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
