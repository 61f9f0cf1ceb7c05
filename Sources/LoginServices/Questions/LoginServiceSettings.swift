/// How the company's service is asked about logins.
package struct LoginServiceSettings: Equatable, Sendable {
    package var url: String
    /// PEM file with the authorities that may have issued the service's certificate; `nil` for those
    /// that the system trusts.
    package var caFile: String?
    /// File with the token that the broker shows the service; `nil` for none.
    package var tokenFile: String?
    /// From the beginning of a request to the end of its answer, and as long again in the queue.
    package var timeout: Duration = .seconds(2)
    /// Requests at a time.
    package var maxInFlight = 32
    /// Logins that wait for a request, or for the answer to one that another login asked for.
    package var maxWaiting = 1_024
    /// The most time for which an answer is remembered.
    package var remember: Duration = .seconds(300)
    /// The most time for which a refusal is remembered.
    package var rememberDenied: Duration = .seconds(10)
    /// For how long after that a login is accepted while the service is down; `nil` for not at all.
    package var outdated: Duration?
    /// Failures in a row after which the service is not asked for a while.
    package var breakerFailures = 5
    package var breakerPause: Duration = .seconds(5)

    package init(url: String) { self.url = url }
}
