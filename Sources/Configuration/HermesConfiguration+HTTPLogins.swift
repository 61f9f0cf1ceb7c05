import Addresses

extension HermesConfiguration {
    /// A service of the company that is asked about logins (`auth.http`).
    package struct HTTPLogins: Sendable, Equatable {
        /// `nil` when nobody is asked.
        package var url: String?
        /// PEM file with the authorities of the URL's certificate; `nil` for those that the system
        /// trusts.
        package var caFile: String?
        /// File with the token that the broker shows the service.
        package var tokenFile: String?
        /// True when plain HTTP is allowed beyond loopback addresses.
        package var allowPlain = false
        /// 100 ms to 30 s.
        package var timeout: Duration = .seconds(2)
        /// Requests at a time, 1 to 1,024.
        package var maxInFlight = 32
        /// Logins that wait, 0 to 65,536.
        package var maxWaiting = 1_024
        /// The most time for which an answer is remembered, 0 to a day.
        package var remember: Duration = .seconds(300)
        /// The same for a refusal, 0 to a minute.
        package var rememberDenied: Duration = .seconds(10)
        package var whenUnavailable = WhenUnavailable.refuse
        /// For how long an answer that is out of date lets in while the service is down.
        package var outdated: Duration = .seconds(3_600)
        /// Failures in a row after which the service is not asked for ``breakerPause``.
        package var breakerFailures = 5
        package var breakerPause: Duration = .seconds(5)

        package enum WhenUnavailable: String, Sendable, Equatable, CaseIterable {
            /// Nobody new gets in.
            case refuse
            /// Lets in clients that the service has let in before, for ``outdated``.
            case remembered
        }

        package init() {}

        package var isOn: Bool { url != nil }

        /// True when the URL's host is another machine, or may be, and there is no TLS.
        var isPlainBeyondLoopback: Bool {
            guard let url, let parts = WebURL(url) else { return false }
            return !parts.isSecure && !IPAddress.isLoopback(host: parts.host)
        }
    }
}
