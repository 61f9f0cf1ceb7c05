/// Figures of the company's service that is asked about logins (`auth.http`).
public struct LoginServiceFigures: Codable, Sendable, Equatable {
    /// Logins since the start, by what came of them.
    public var logins: [String: UInt64]
    /// Requests on their way.
    public var inFlight: Int
    /// Logins that wait for an answer.
    public var waiting: Int
    /// Answers that are remembered, some of them out of date.
    public var remembered: Int
    /// True while the service is asked only now and then, because it failed.
    public var isFailing: Bool
    /// The reason for which the last request failed; `nil` when it did not.
    public var failure: String?

    enum CodingKeys: String, CodingKey {
        case logins
        case inFlight = "in_flight"
        case waiting, remembered
        case isFailing = "failing"
        case failure
    }

    public init(
        logins: [String: UInt64], inFlight: Int, waiting: Int, remembered: Int, isFailing: Bool,
        failure: String? = nil
    ) {
        self.logins = logins
        self.inFlight = inFlight
        self.waiting = waiting
        self.remembered = remembered
        self.isFailing = isFailing
        self.failure = failure
    }
}
