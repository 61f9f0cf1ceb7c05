/// What a peer speaks whose first bytes are no CONNECT, as far as these bytes tell.
package enum ForeignProtocol: Sendable, BitwiseCopyable, CaseIterable {
    case http
    /// From an address that the listener does not take for a proxy's.
    case proxyHeader

    /// Words that an HTTP request begins with (RFC 9110, section 9; RFC 9113, section 3.4).
    private static var methods: [String] {
        ["GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "PRI * "]
    }

    /// What a header of the PROXY protocol begins with, version 1 and 2.
    private static var proxyHeaders: [String] { ["PROXY ", "\r\n\r\n\0\r\nQUIT\n"] }

    /// `nil` when the bytes are unknown, or too few to tell.
    init?(beginning bytes: UnsafeRawBufferPointer) {
        self.init { bytes.starts(with: $0.utf8) }
    }

    /// By the five bytes of `TLSFailure.opening`; `nil` when they are unknown, or fewer.
    package init?(opening bytes: [UInt8]) {
        guard bytes.count >= 5 else { return nil }
        self.init { bytes.starts(with: $0.utf8.prefix(bytes.count)) }
    }

    private init?(where begins: (String) -> Bool) {
        if Self.proxyHeaders.contains(where: begins) {
            self = .proxyHeader
        } else if Self.methods.contains(where: begins) {
            self = .http
        } else {
            return nil
        }
    }

    /// What an operator can do about it, for a log.
    package var hint: String {
        switch self {
        case .http:
            "the client speaks HTTP; MQTT over WebSockets is not served, and the HTTP API has a port of its own"
        case .proxyHeader:
            "a PROXY header from an address that proxy_from of the listener does not name: either the proxy is missing there, or somebody claims to be one"
        }
    }
}
