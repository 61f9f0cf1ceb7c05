import BrokerAPI
import TLS

/// Counters of TLS handshakes since the start.
struct HandshakeCounters {
    /// The kind of a successful handshake.
    private enum Kind: UInt8, CountLabel {
        case full
        /// It resumed the TLS session of an earlier connection.
        case resumed

        var name: String {
            switch self {
            case .full: "full"
            case .resumed: "resumed"
            }
        }
    }

    /// The negotiated TLS version.
    private enum Version: UInt8, CountLabel {
        case tls12, tls13

        var name: String {
            switch self {
            case .tls12: "1.2"
            case .tls13: "1.3"
            }
        }
    }

    private var kinds = Counts<Kind>()
    private var versions = Counts<Version>()
    private var failures = Counts<TLSFailure.Reason>()

    mutating func succeeded(isResumed: Bool, _ version: SecureChannel.Version) {
        kinds.add(isResumed ? .resumed : .full)
        switch version {
        case .tls12: versions.add(.tls12)
        case .tls13: versions.add(.tls13)
        }
    }

    mutating func failed(_ reason: TLSFailure.Reason) { failures.add(reason) }

    func add(to figures: inout BrokerFigures) {
        figures.tlsHandshakes = kinds.figures
        figures.tlsVersions = versions.figures
        figures.tlsHandshakeFailures = failures.figures
    }
}

extension TLSFailure.Reason: CountLabel {}
