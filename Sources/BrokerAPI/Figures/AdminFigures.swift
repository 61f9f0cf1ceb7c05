/// Figures of the admin plane.
public struct AdminFigures: Sendable, Equatable {
    /// Rejected requests, by reason.
    public var refused: [BrokerFigures.Count] = []
    /// Connections refused because none of their listener's could make room for them.
    public var connectionsRefused: UInt64 = 0
    /// Connections that were closed to make room for others.
    public var connectionsDisplaced: UInt64 = 0
    /// The certificate of HTTPS; `nil` with plain HTTP.
    public var certificate: Certificate?

    /// A certificate in use.
    public struct Certificate: Sendable, Equatable {
        public var file: String
        /// Days until it expires; negative once it has.
        public var daysLeft: Double

        public init(file: String, daysLeft: Double) {
            self.file = file
            self.daysLeft = daysLeft
        }
    }

    public init() {}
}
