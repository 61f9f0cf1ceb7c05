/// Figures of the admin plane.
package struct AdminFigures: Sendable, Equatable {
    /// Rejected requests, by reason.
    package var refused: [BrokerFigures.Count] = []
    /// Connections refused because none of their listener's could make room for them.
    package var connectionsRefused: UInt64 = 0
    /// Connections that were closed to make room for others.
    package var connectionsDisplaced: UInt64 = 0
    /// The certificate of HTTPS; `nil` with plain HTTP.
    package var certificate: Certificate?

    /// A certificate in use.
    package struct Certificate: Sendable, Equatable {
        package var file: String
        /// Days until it expires; negative once it has.
        package var daysLeft: Double

        package init(file: String, daysLeft: Double) {
            self.file = file
            self.daysLeft = daysLeft
        }
    }

    package init() {}
}
