/// Figures of the sender of notifications to Apple.
public struct PushFigures: Sendable, Equatable {
    public var connections = 0
    /// Answers since the start by Apple's word, `Success` among them.
    public var answers: [BrokerFigures.Count] = []
    /// Notifications that were sent again because no answer came.
    public var repeated: UInt64 = 0
    public var goAways: UInt64 = 0
    /// Connections that could not be opened.
    public var connectionsFailed: UInt64 = 0
    /// True while nothing is sent.
    public var isPaused = false

    public init() {}
}
