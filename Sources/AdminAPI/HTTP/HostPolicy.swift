import Addresses
import Hummingbird
import PlainText

/// Which `Host` and `Origin` headers a listener accepts.
///
/// A web page can make a browser send requests to a loopback address, and with a name that it
/// points there (DNS rebinding) even read the answers. Tokens stop it; this stops it earlier.
enum HostPolicy: Sendable, Equatable {
    /// Bound to a loopback address: only names of the machine itself, with any port.
    case loopback
    /// Bound to another address or to a Unix socket: any name.
    case any

    /// The policy of a listener on this address.
    init(boundTo address: String) {
        self = IPAddress.isLoopback(host: address) ? .loopback : .any
    }

    /// Checks the headers of one request.
    ///
    /// - Parameters:
    ///   - host: The value of `Host`; `nil` when there is none.
    ///   - repeated: True when a second `Host` follows.
    ///   - origin: The value of `Origin`, which browsers add; `nil` when there is none.
    /// - Throws: ``Problem`` when there is not exactly one host, or one of them is not ours.
    func check(host: String?, repeated: Bool, origin: String?) throws(Problem) {
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
        guard let origin else { return }
        let same = ["http://", "https://"].contains {
            origin.lowercased() == $0 + host.lowercased()
        }
        if !same {
            throw Problem(
                .crossOrigin,
                "The request comes from another web origin, \"\(origin.visible())\".",
                field: "Origin", fix: "Call the API from a program rather than from a web page.")
        }
    }

    /// The name in front of the port; `nil` when the value is not a host.
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

    /// Nothing, or a colon with a port behind it, which may be left out.
    private static func isPort(_ bytes: Substring.UTF8View) -> Bool {
        guard let first = bytes.first else { return true }
        let digits = bytes.dropFirst()
        return first == UInt8(ascii: ":") && digits.count <= 5
            && digits.allSatisfy { (0x30...0x39).contains($0) }
            && digits.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 65_535
    }
}
