extension HermesClient.State: CustomStringConvertible {
    /// A phrase for a log, in a line.
    public var description: String {
        switch self {
        case .connecting(let attempt): "connecting, try \(attempt)"
        case .connected(sessionPresent: true): "connected, the session goes on"
        case .connected(sessionPresent: false): "connected, with a new session"
        case .waiting(let milliseconds, let reason, let cause):
            "waiting \((milliseconds + 500) / 1_000) s, \(reason)"
                + (cause.map { ": \($0.description)" } ?? "")
        case .suspended: "suspended"
        case .stopped(let reason): "stopped, \(reason)"
        }
    }
}

extension HermesClient.WaitReason: CustomStringConvertible {
    /// A phrase for a log.
    public var description: String {
        switch self {
        case .retrying: "then another try"
        case .unreachable: "the broker cannot be reached"
        case .takenOver: "another client takes this one's session"
        }
    }
}

extension HermesClient.StopReason: CustomStringConvertible {
    /// A phrase for a log.
    public var description: String {
        switch self {
        case .notStarted: "not started"
        case .requested: "as asked"
        case .unacceptableProtocolVersion: "the broker does not speak MQTT 3.1.1"
        case .identifierRejected: "the broker rejects the client identifier"
        case .credentialsRefused: "the broker refuses the credentials"
        }
    }
}

extension HermesClient.Event: CustomStringConvertible {
    /// A sentence for a log, in a line.
    public var description: String {
        switch self {
        case .loss(let channel, let ranges):
            "lost in \(channel.visible): \(ranges.map { "\($0.lowerBound)-\($0.upperBound)" })"
        case .sessionLost: "the broker had lost the session"
        case .dropped(let reason): "disconnected: \(reason.description)"
        case .renewalRefused(let filter): "the broker refused \(filter.visible)"
        case .publishRefused(let topic):
            "the broker refused a message to \(topic.visible), which is held back"
        case .unacknowledged(let topic, let milliseconds, let count):
            "a message to \(topic.visible) is not acknowledged after \(milliseconds / 1_000) s, "
                + "the oldest of \(count)"
        case .storageDamaged(let bytes, let setAside):
            "\(bytes) bytes of the storage cannot be read"
                + (setAside.map { "; the file is kept as \($0.visible)" } ?? "")
        case .storageFailed(let reason): "the storage cannot be written: \(reason.visible)"
        case .storageRecovered: "the storage can be written again"
        case .droppedAtMostOnce(let count): "\(count) messages of QoS 0 were dropped"
        }
    }
}

extension String {
    /// The text with every character escaped that could deceive a terminal, or begin a line.
    var visible: String {
        unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
                .paragraphSeparator:
                "\\u{\(String(scalar.value, radix: 16))}"
            default: String(scalar)
            }
        }.joined()
    }
}
