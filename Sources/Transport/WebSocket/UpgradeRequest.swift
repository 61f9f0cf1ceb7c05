/// What a listener asks of the requests that begin its WebSocket connections.
public struct WebSocketRules: Hashable, Sendable {
    /// The path of the request, such as `/mqtt`; a query may follow it.
    public var path: [UInt8]
    /// The origins whose web pages may connect, such as `https://app.example.org`, in lower case.
    public var origins: [[UInt8]]
    /// True when the query may bring a token as `access_token`.
    public var readsTokenInQuery: Bool
    /// True when the header `Authorization` may bring a token.
    public var readsTokenInHeader: Bool

    public init(
        path: String, origins: [String] = [], readsTokenInQuery: Bool = false,
        readsTokenInHeader: Bool = false
    ) {
        self.path = Array(path.utf8)
        self.origins = origins.map { $0.utf8.map(\.lowercased) }
        self.readsTokenInQuery = readsTokenInQuery
        self.readsTokenInHeader = readsTokenInHeader
    }
}

/// A client's request to change from HTTP/1.1 to WebSocket (RFC 6455, section 4.2.1).
///
/// Only what every client sends is accepted: lines end with CR and LF, no header is folded, none that
/// must be there once is there twice (RFC 9112).
public struct UpgradeRequest: Hashable, Sendable {
    /// The most bytes of a request, its empty line included.
    public static var maximumSize: Int { 8 * 1_024 }
    /// The most headers of a request.
    public static var mostHeaders: Int { 100 }

    /// The sub-protocols that carry MQTT, the better first [MQTT-6.0.0-4]. The second is that of clients
    /// of MQTT 3.1.
    public enum SubProtocol: String, Sendable, CaseIterable {
        case mqtt
        case mqttv31 = "mqttv3.1"
    }

    /// The first of ``SubProtocol`` that the client offers.
    public let subProtocol: SubProtocol
    /// The header `Sec-WebSocket-Key`: 16 bytes in base64.
    public let key: [UInt8]
    /// The bearer token, which is secret; `nil` without one.
    public let token: [UInt8]?
    /// The size of the request; frames may follow.
    public let size: Int

    /// Parses a stream's request. `nil` asks for more bytes, and only below ``maximumSize``. `read` is
    /// how many of the bytes an earlier call has seen.
    public static func decode(
        _ bytes: UnsafeRawBufferPointer, rules: WebSocketRules, read: Int = 0
    ) throws(WebSocketFlaw) -> UpgradeRequest? {
        guard let first = bytes.first else { return nil }
        guard (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first) else { throw .notHTTP }
        guard let end = end(of: bytes, from: read) else {
            guard bytes.count < maximumSize else { throw .headersTooLong }
            return nil
        }
        return try UpgradeRequest(
            UnsafeRawBufferPointer(rebasing: bytes[..<(end - 2)]), size: end, rules)
    }

    /// The offset behind the empty line that ends the headers, within the maximum.
    private static func end(of bytes: UnsafeRawBufferPointer, from read: Int) -> Int? {
        let count = min(bytes.count, maximumSize)
        var offset = max(3, read)
        while offset < count {
            if bytes[offset] == 0x0A, bytes[offset - 1] == 0x0D, bytes[offset - 2] == 0x0A,
                bytes[offset - 3] == 0x0D
            {
                return offset + 1
            }
            offset += 1
        }
        return nil
    }

    /// Parses a request whose lines, without the empty one, are `lines`.
    private init(
        _ lines: UnsafeRawBufferPointer, size: Int, _ rules: WebSocketRules
    ) throws(WebSocketFlaw) {
        var reader = HeaderReader(lines)
        let query = try Self.query(ofRequestLine: try reader.line(), rules)
        var fields = Fields(readsToken: rules.readsTokenInHeader)
        if rules.readsTokenInQuery { try fields.token.take(query: query) }
        var count = 0
        while !reader.isAtEnd {
            count += 1
            guard count <= Self.mostHeaders else { throw .headersTooLong }
            try fields.take(try reader.field())
        }
        guard let host = fields.host, !host.isEmpty else { throw .host }
        guard !fields.hasBody else { throw .body }
        guard fields.upgradesToWebSocket, fields.connectionUpgrades else { throw .notUpgrade }
        guard fields.version == Array("13".utf8) else { throw .version }
        guard let key = fields.key, Self.isKey(key) else { throw .key }
        if let origin = fields.origin, !rules.origins.contains(origin.map(\.lowercased)) {
            throw .origin
        }
        let offered = SubProtocol.allCases.first {
            fields.subProtocols.contains(Array($0.rawValue.utf8))
        }
        guard let offered else { throw .subProtocol }
        subProtocol = offered
        self.key = key
        token = fields.token.bytes
        self.size = size
    }

    /// Checks the request line; returns the query of its target, without the question mark.
    private static func query(
        ofRequestLine line: UnsafeRawBufferPointer, _ rules: WebSocketRules
    ) throws(WebSocketFlaw) -> Slice<UnsafeRawBufferPointer> {
        let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 3, words.allSatisfy({ !$0.isEmpty }),
            words[0].allSatisfy(\.isTokenByte), words[1].allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .malformedRequest }
        guard words[2].elementsEqual("HTTP/1.1".utf8) else {
            throw words[2].starts(with: "HTTP/".utf8) ? .httpVersion : .malformedRequest
        }
        guard words[0].elementsEqual("GET".utf8) else { throw .method }
        guard let target = pathAndQuery(ofTarget: words[1]) else { throw .malformedRequest }
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        guard path.elementsEqual(rules.path) else { throw .path }
        return target.dropFirst(path.count + 1)
    }

    /// Path and query of a request's target, `/path?query` or `http://host/path?query` (RFC 9112,
    /// section 3.2).
    private static func pathAndQuery(
        ofTarget target: Slice<UnsafeRawBufferPointer>
    ) -> Slice<UnsafeRawBufferPointer>? {
        var rest = target
        if rest.first != UInt8(ascii: "/") {
            let scheme = rest.prefix { $0 != UInt8(ascii: ":") }.map(\.lowercased)
            guard scheme == Array("http".utf8) || scheme == Array("https".utf8) else { return nil }
            rest = rest.dropFirst(scheme.count)
            guard rest.starts(with: "://".utf8) else { return nil }
            rest = rest.dropFirst(3).drop { $0 != UInt8(ascii: "/") }
        }
        return rest
    }

    /// True for 16 bytes in base64, whose last digit has no bits to spare.
    private static func isKey(_ key: [UInt8]) -> Bool {
        guard key.count == 24, key[22] == UInt8(ascii: "="), key[23] == UInt8(ascii: "=") else {
            return false
        }
        return key[..<22].allSatisfy(\.isBase64Digit)
            && [UInt8]("AQgw".utf8).contains(key[21])
    }
}

/// The headers of a request that matter here.
private struct Fields {
    var host: [UInt8]?
    var hasBody = false
    var upgradesToWebSocket = false
    var connectionUpgrades = false
    var version: [UInt8]?
    var key: [UInt8]?
    var origin: [UInt8]?
    /// The values of all headers of that name, in order.
    var subProtocols: [[UInt8]] = []
    var token = BearerToken()
    private let readsToken: Bool

    /// `readsToken`: the header `Authorization` matters.
    init(readsToken: Bool) { self.readsToken = readsToken }

    mutating func take(_ field: HeaderReader.Field) throws(WebSocketFlaw) {
        if field.isNamed("host") {
            try Self.set(&host, field, else: .host)
        } else if field.isNamed("upgrade") {
            upgradesToWebSocket =
                upgradesToWebSocket
                || field.listed.contains { $0.map(\.lowercased) == Array("websocket".utf8) }
        } else if field.isNamed("connection") {
            connectionUpgrades =
                connectionUpgrades
                || field.listed.contains { $0.map(\.lowercased) == Array("upgrade".utf8) }
        } else if field.isNamed("sec-websocket-version") {
            try Self.set(&version, field, else: .version)
        } else if field.isNamed("sec-websocket-key") {
            try Self.set(&key, field, else: .key)
        } else if field.isNamed("origin") {
            try Self.set(&origin, field, else: .origin)
        } else if readsToken, field.isNamed("authorization") {
            try token.take(authorization: field.value)
        } else if field.isNamed("sec-websocket-protocol") {
            subProtocols.append(contentsOf: field.listed)
        } else if field.isNamed("content-length") {
            hasBody = hasBody || !Array(field.value).elementsEqual("0".utf8)
        } else if field.isNamed("transfer-encoding") {
            hasBody = true
        }
    }

    /// Takes a header that may be there once.
    private static func set(
        _ value: inout [UInt8]?, _ field: HeaderReader.Field, else flaw: WebSocketFlaw
    ) throws(WebSocketFlaw) {
        guard value == nil else { throw flaw }
        value = Array(field.value)
    }
}
