/// What a live trace follows, and its bounds.
public struct TraceRequest: Sendable, Equatable {
    public enum Subject: Sendable, Equatable {
        /// The packets and events of one client, also before it connects.
        case client(String)
        /// Messages on topics that a topic filter matches, and what becomes of each for each receiver.
        case topic(filter: String)
        /// The packets of clients with this address, or with one of this network.
        case address(String)
    }

    /// Traces at the same time.
    public static let most = 16
    /// Seconds that a trace lasts.
    public static let seconds: ClosedRange<Int64> = 1...3_600
    public static let usualSeconds: Int64 = 60
    /// Lines in a second; more are counted.
    public static let rates: ClosedRange<Int64> = 1...1_000
    public static let usualRate: Int64 = 100
    /// Bytes of a payload that a line shows.
    public static let mostPayloadBytes = 256

    public var subject: Subject
    public var seconds: Int64
    public var linesPerSecond: Int64
    /// True to show the beginning of payloads.
    public var showsPayloads: Bool

    public init(
        _ subject: Subject, seconds: Int64 = usualSeconds, linesPerSecond: Int64 = usualRate,
        showsPayloads: Bool = false
    ) {
        self.subject = subject
        self.seconds = seconds
        self.linesPerSecond = linesPerSecond
        self.showsPayloads = showsPayloads
    }
}
