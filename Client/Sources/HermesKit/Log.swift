extension HermesClient {
    /// A line for the app's log: what ``HermesClient/states`` and ``HermesClient/events`` tell as
    /// well, in words. It holds no payload and no password, and no character that could begin
    /// another line.
    public struct LogLine: Hashable, Sendable {
        /// How much it matters.
        public enum Level: Int, Hashable, Sendable, Comparable {
            /// A try to connect.
            case debug
            /// A connection, its end, and a wait.
            case info
            /// The client goes on by itself, and the app may want to know why.
            case notice
            /// Messages were lost or refused, or the app must do something.
            case warning

            /// By how much it matters.
            public static func < (left: Self, right: Self) -> Bool {
                left.rawValue < right.rawValue
            }
        }

        /// How much it matters.
        public let level: Level
        /// A phrase, such as "state: connected, the session goes on".
        public let message: String
    }
}

extension HermesClient.LogLine {
    init(_ state: HermesClient.State) {
        level =
            switch state {
            case .connecting: .debug
            case .connected, .suspended, .stopped(.notStarted), .stopped(.requested): .info
            case .waiting(_, .takenOver, _): .warning
            case .waiting: .info
            case .stopped: .warning
            }
        message = "state: \(state)"
    }

    init(_ event: HermesClient.Event) {
        level =
            switch event {
            case .dropped: .info
            case .sessionLost, .storageRecovered: .notice
            case .loss, .renewalRefused, .publishRefused, .unacknowledged, .storageDamaged,
                .storageFailed, .droppedAtMostOnce:
                .warning
            }
        message = "event: \(event)"
    }
}
