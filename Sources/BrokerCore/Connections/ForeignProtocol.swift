/// A protocol other than MQTT, recognised by the first bytes of a connection.
public enum ForeignProtocol: Sendable, BitwiseCopyable, CaseIterable {
    case http
    /// A PROXY header from an address that is not in the listener's `proxy_from`.
    case proxyHeader

    /// Methods that begin an HTTP request (RFC 9110, section 9; RFC 9113, section 3.4).
    private static var methods: [String] {
        ["GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "PRI * "]
    }

    /// The first bytes of PROXY headers of versions 1 and 2.
    private static var proxyHeaders: [String] { ["PROXY ", "\r\n\r\n\0\r\nQUIT\n"] }

    /// `nil` when the bytes match no protocol or are too few.
    package init?(beginning bytes: UnsafeRawBufferPointer) {
        self.init { bytes.starts(with: $0.utf8) }
    }

    /// Recognises the first five bytes of `TLSFailure.opening`; `nil` when they match none.
    public init?(opening bytes: [UInt8]) {
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

    /// Advice for the log.
    public var hint: String {
        switch self {
        case .http:
            "the client speaks HTTP; MQTT over WebSockets is not served, and the HTTP API has a port of its own"
        case .proxyHeader:
            "a PROXY header from an address that proxy_from of the listener does not name: either the proxy is missing there, or somebody claims to be one"
        }
    }
}
