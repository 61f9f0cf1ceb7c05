import Addresses

extension HermesConfiguration {
    /// A receiver of requests: of receipts (`webhook`), of wakes (`wakes.webhook`).
    package struct Webhook: Sendable, Equatable {
        /// An http or https URL; `nil` sends nothing.
        package var url: String?
        /// File with the secret that signs requests; set whenever the URL is.
        package var secretFile: String?
        /// PEM file with the authorities that may have issued the receiver's certificate; `nil` for
        /// those that the system trusts.
        package var caFile: String?
        /// Longest time from the beginning of a request to its answer.
        package var timeout: Duration = .seconds(10)
        /// Longest pause between two attempts.
        package var maxPause: Duration = .seconds(300)
        /// True when plain HTTP is allowed beyond loopback addresses.
        package var allowPlain = false

        package init() {}

        /// True when the URL's host is another machine, or may be, and there is no TLS.
        var isPlainBeyondLoopback: Bool {
            guard let url, let parts = WebURL(url) else { return false }
            return !parts.isSecure && !IPAddress.isLoopback(host: parts.host)
        }
    }
}
