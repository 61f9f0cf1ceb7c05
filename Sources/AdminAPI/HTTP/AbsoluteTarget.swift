import NIOHTTP1
import PlainText

extension Problem {
    /// A request whose target is a whole URL, as one that is sent to a proxy, and whose Host names
    /// another server than it: the URL counts (RFC 9112, section 3.2.2), and programs on the way may
    /// have looked at the other. `nil` for every other request.
    ///
    /// The library keeps only the URL's path, so it is checked where the head comes in.
    init?(contradictingTargetOf head: HTTPRequestHead) {
        let target = head.uri.utf8
        guard target.first != UInt8(ascii: "/"), let host = head.headers.first(name: "Host"),
            let authority = Self.authority(of: head.uri),
            authority.lowercasedASCII != host.utf8.lowercasedASCII
        else { return nil }
        self.init(
            .malformedRequest,
            "The request target is \"\(head.uri.visible())\", and the Host header is "
                + "\"\(host.visible())\".",
            field: "Host", fix: "Send a path that begins with `/`, or the URL's host as Host.")
    }

    /// The host and port of a target that is a whole URL; `nil` for a path.
    static func authority(ofTarget target: String) -> String? {
        authority(of: target).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The host and port behind `://`, with user information if there is any.
    private static func authority(of uri: String) -> [UInt8]? {
        let bytes = Array(uri.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
            bytes[colon...].starts(with: "://".utf8)
        else { return nil }
        return Array(bytes[(colon + 3)...].prefix { !"/?#".utf8.contains($0) })
    }
}
