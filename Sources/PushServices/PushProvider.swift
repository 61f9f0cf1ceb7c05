/// What tells one push service from another: addresses, what proves who sends, requests and answers.
///
/// Owned by the sender's thread. A service is a number, as ``ServiceRoutes`` gives it; times are
/// milliseconds of the monotonic clock.
protocol PushProvider: AnyObject {
    var brand: ServiceBrand { get }
    var routes: ServiceRoutes { get }
    /// The most connections to each service.
    var mostConnections: Int { get }

    func endpoint(of service: Int) -> ServiceEndpoint
    func tls(of service: Int) -> ServiceTLS

    /// Takes files that were read anew; those of another push service change nothing.
    func use(_ credentials: PushCredentials)

    /// What goes with notifications to a service now.
    func token(for service: Int, at now: UInt64) -> SendingToken
    /// Why nothing can be sent to a service, whatever its connections do; `nil` while nothing is known.
    func obstacle(of service: Int) -> String?

    /// Sets the fields of a request.
    func fill(
        _ fields: inout RequestFields, _ request: NotificationRequest, to service: Int,
        _ token: String?)
    func answer(_ status: Int, _ body: [UInt8], retryAfter: UInt64?) -> ProviderAnswer
    /// Notes an answer to a notification that went with the token of this time: true when the answer
    /// was about a token that is not in use any more, so the notification is to be sent again.
    func isMended(_ answer: ProviderAnswer, _ issuedAt: Int64, on service: Int, at now: UInt64)
        -> Bool

    /// The service that gives a service's tokens while it has none to send with; `nil` otherwise.
    func missingToken(of service: Int) -> Int?
    /// True when a request of the provider's own is due on a service: one at a time. `isWanted` is
    /// true while notifications wait for what it brings.
    func owesErrand(on service: Int, isWanted: Bool, at now: UInt64) -> Bool
    /// Sets the fields of that request; returns its body, or `nil` when none can be made.
    func fillErrand(_ fields: inout RequestFields, on service: Int, at now: UInt64) -> [UInt8]?
    func errandAnswered(
        on service: Int, _ status: Int, _ body: [UInt8], retryAfter: UInt64?, at now: UInt64)
    /// The request ended without an answer.
    func errandLost(on service: Int, at now: UInt64)
}

/// What says to a push service who sends.
enum SendingToken: Equatable {
    /// The connection itself does, by a certificate.
    case none
    /// A token, with a number that tells it from earlier ones.
    case text(String, issuedAt: Int64)
    case missing
}
