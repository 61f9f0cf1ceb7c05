import Addresses
import Hummingbird
import PlainText

/// The accepted `Host` and `Origin` headers of a listener.
///
/// A web page can make a browser send requests to a loopback address, and by DNS rebinding read the
/// answers. Tokens prevent it; this check does so earlier.
enum HostPolicy: Sendable, Equatable {
    /// For a loopback address: only names of this machine, with any port.
    case loopback
    /// For other addresses and Unix sockets: any name.
    case any

    /// The policy of a listener on this address.
    init(boundTo address: String) {
        self = IPAddress.isLoopback(host: address) ? .loopback : .any
    }

    /// Checks the headers of one request.
    ///
    /// - Parameters:
    ///   - host: The value of `Host`; `nil` without one.
    ///   - repeated: True when a second `Host` follows.
    ///   - origin: The value of `Origin`, which browsers add; `nil` without one.
    /// - Returns: The name in `Host`, without the port.
    /// - Throws: ``Problem`` unless there is exactly one host and both are accepted.
    @discardableResult
    func check(host: String?, repeated: Bool, origin: String?) throws(Problem) -> String {
        guard let host, !repeated, let name = Self.name(ofHost: host) else {
            let found = host.map { repeated ? "given twice" : "\"\($0.visible())\"" } ?? "missing"
            throw Problem(
                .malformedRequest, "The Host header is \(found).", field: "Host",
                fix: "Send one Host header with the server's name and port.")
        }
        if self == .loopback, !IPAddress.isLoopback(host: name) {
            throw Problem(
                .wrongHost,
                "The Host header is \"\(host.visible())\"; this server listens on loopback only.",
                field: "Host",
                fix: "Use localhost, 127.0.0.1 or [::1] in the URL, or set admin.address.")
        }
        guard let origin else { return String(name) }
        // By bytes: an origin is foreign text, which this machine has not asked for.
        let isSame = ["http://", "https://"].contains { scheme in
            origin.utf8.lowercasedASCII == scheme.utf8 + host.utf8.lowercasedASCII
        }
        if !isSame {
            throw Problem(
                .crossOrigin,
                "The request comes from another web origin, \"\(origin.visible())\".",
                field: "Origin", fix: "Call the API from a program rather than from a web page.")
        }
        return String(name)
    }

    /// The name before the port; `nil` when the value is no host.
    private static func name(ofHost host: String) -> Substring? {
        let bytes = host.utf8
        let end: String.Index
        if bytes.first == UInt8(ascii: "[") {
            guard let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            end = bytes.index(after: bracket)
        } else {
            end = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        }
        let name = bytes[..<end]
        let isName = name.allSatisfy { byte in
            (0x21...0x7E).contains(byte) && !"/?#@\\\"<>".utf8.contains(byte)
        }
        return !name.isEmpty && isName && isPort(bytes[end...]) ? Substring(name) : nil
    }

    /// True for an empty text, and for a colon with an optional port.
    private static func isPort(_ bytes: Substring.UTF8View) -> Bool {
        guard let first = bytes.first else { return true }
        let digits = bytes.dropFirst()
        return first == UInt8(ascii: ":") && digits.count <= 5
            && digits.allSatisfy { (0x30...0x39).contains($0) }
            && digits.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 65_535
    }
}
