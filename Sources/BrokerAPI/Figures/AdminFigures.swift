/// What the admin plane counts of itself.
package struct AdminFigures: Sendable, Equatable {
    /// Requests that were not let in, by reason.
    package var refused: [BrokerFigures.Count] = []
    /// Connections that were refused, because their listener had as many as it may have.
    package var connectionsRefused: UInt64 = 0
    /// The certificate of HTTPS; `nil` with plain HTTP.
    package var certificate: Certificate?

    /// A certificate in use.
    package struct Certificate: Sendable, Equatable {
        package var file: String
        /// Until it ends; below 0 once it has.
        package var daysLeft: Double

        package init(file: String, daysLeft: Double) {
            self.file = file
            self.daysLeft = daysLeft
        }
    }

    package init() {}
}
