import Addresses
import PlainText

/// The address of a broker's HTTP API.
package enum AdminEndpoint: Sendable, Equatable {
    /// `http://host:port` or `https://...`, perhaps with a path, without a slash at the end.
    case web(base: String, isPlainTextToOthers: Bool)
    case unixSocket(path: String)

    /// The broker's default.
    package static let standard = AdminEndpoint.web(
        base: "http://127.0.0.1:8080", isPlainTextToOthers: false)

    /// Reads a URL as an operator writes it; `nil` for a malformed one, or one with parts that make
    /// no sense here (user, query, fragment).
    package init?(url: String) {
        let bytes = Array(url.utf8)
        guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !Self.misplaced.contains($0) }),
            let scheme = ["http", "https"].first(where: { url.lowercased().hasPrefix($0 + "://") })
        else { return nil }
        let rest = url.dropFirst(scheme.count + 3)
        let authority = rest.prefix { $0 != "/" }
        guard let host = Self.host(of: authority) else { return nil }
        var path = rest.dropFirst(authority.count)
        while path.last == "/" { path.removeLast() }
        self = .web(
            base: "\(scheme)://\(authority)\(path)",
            isPlainTextToOthers: scheme == "http" && !IPAddress.isLoopback(host: host))
    }

    /// The API of a broker on this machine that listens on an address, with TLS or without. A
    /// wildcard address is reached over loopback.
    package init(listeningOn address: String, port: UInt16, isSecure: Bool = false) {
        let host =
            switch address {
            case "0.0.0.0": "127.0.0.1"
            case "::": "[::1]"
            case _ where address.contains(":"): "[\(address)]"
            default: address
            }
        self = .web(
            base: "\(isSecure ? "https" : "http")://\(host):\(port)",
            isPlainTextToOthers: !isSecure && !IPAddress.isLoopback(host: host))
    }

    /// Host, without brackets, and port of an https address; `nil` for all others.
    package var secureAuthority: (host: String, port: UInt16)? {
        guard case .web(let base, _) = self, base.hasPrefix("https://") else { return nil }
        let authority = base.dropFirst("https://".count).prefix { $0 != "/" }
        guard let host = Self.host(of: authority) else { return nil }
        let port = UInt16(authority.dropFirst(host.count + 1))
        return (host.filter { $0 != "[" && $0 != "]" }, port ?? 443)
    }

    /// The URL of a resource: every byte of segments and values that is not unreserved is
    /// percent-encoded, a slash too, so that a client identifier stays one segment.
    package func url(_ segments: [String], query: [(name: String, value: String)] = []) -> String {
        var url =
            switch self {
            case .web(let base, _): base
            case .unixSocket(let path): "http+unix://\(Self.percentEncoded(path))"
            }
        for segment in segments {
            let encoded = Self.percentEncoded(segment)
            // A segment of dots alone would be taken as "this folder" or "the one above".
            let isDots = encoded == "." || encoded == ".."
            url += "/" + (isDots ? encoded.utf8.map { _ in "%2E" }.joined() : encoded)
        }
        for (index, item) in query.enumerated() {
            url += index == 0 ? "?" : "&"
            url += "\(item.name)=\(Self.percentEncoded(item.value))"
        }
        return url
    }

    /// Keeps letters, digits, `-`, `.`, `_` and `~` (RFC 3986, section 2.3), and writes every other
    /// byte as `%XX`.
    package static func percentEncoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.append(byte)
            default:
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static let misplaced = Array("@?#\"<>\\^`{|}".utf8)

    /// The host in `host` or `host:port`; `nil` when either is malformed.
    private static func host(of authority: Substring) -> Substring? {
        let host: Substring
        let port: Substring
        if authority.first == "[" {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[...end]
            port = authority[authority.index(after: end)...]
            guard host.count > 2 else { return nil }
        } else {
            host = authority.prefix { $0 != ":" }
            port = authority.dropFirst(host.count)
            guard !host.isEmpty, !host.contains("["), !host.contains("]") else { return nil }
        }
        if port.isEmpty { return host }
        guard port.first == ":", port.dropFirst().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = UInt16(port.dropFirst()), number > 0
        else { return nil }
        return host
    }
}

extension AdminEndpoint: CustomStringConvertible {
    /// The address for messages, safe to print.
    package var description: String {
        switch self {
        case .web(let base, _): VisibleText.escaped(base)
        case .unixSocket(let path): "the Unix socket \"\(VisibleText.escaped(path))\""
        }
    }
}
