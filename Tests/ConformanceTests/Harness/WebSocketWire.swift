import Testing

/// A connection of WebSocket on loopback, of our own (RFC 6455).
///
/// As a wire it sends what a call passes to it in one binary frame. Frames of the broker are held to the
/// rules for a server: binary or control, whole, without a mask.
final class WebSocketWire: ConformanceWire {
    private let wire: TCPWire
    private var unread: [UInt8] = []
    /// The status code of the broker's close frame; 1005 for a frame without one.
    private(set) var closeCode: Int?

    /// Connects; the broker has answered the request, offering `subProtocols`, with the first of these.
    init(port: UInt16, subProtocols: String = "mqtt") throws {
        wire = try TCPWire(port: port)
        let response = try ask(offering: subProtocols)
        let expected = subProtocols.split(separator: ",").first.map(String.init) ?? ""
        #expect(response.hasPrefix("HTTP/1.1 101 "), "\(response)")
        #expect(response.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))
        #expect(response.contains("\r\nSec-WebSocket-Protocol: \(expected)\r\n"), "\(response)")
    }

    /// The answer to a request that offers `subProtocols`, or has no such header.
    static func answer(port: UInt16, offering subProtocols: String?) throws -> String {
        let wire = try TCPWire(port: port)
        return try Self.ask(wire, offering: subProtocols).text
    }

    private func ask(offering subProtocols: String) throws -> String {
        let (text, rest) = try Self.ask(wire, offering: subProtocols)
        unread = rest
        return text
    }

    private static func ask(
        _ wire: TCPWire, offering subProtocols: String?
    ) throws -> (text: String, rest: [UInt8]) {
        var lines = [
            "GET /mqtt HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        ]
        if let subProtocols { lines.append("Sec-WebSocket-Protocol: \(subProtocols)") }
        try wire.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
        var received: [UInt8] = []
        let end = Array("\r\n\r\n".utf8)
        while let bytes = try wire.receive(within: TCPWire.patience), !bytes.isEmpty {
            received += bytes
            if let place = received.firstRange(of: end) {
                return (
                    String(decoding: received[..<place.upperBound], as: UTF8.self),
                    Array(received[place.upperBound...])
                )
            }
        }
        throw ConformanceFailure("no answer to the request for WebSocket")
    }

    /// Sends a frame with this opcode; `isFinal` is false for a fragment that others follow.
    func sendFrame(
        _ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true
    ) throws(ConformanceFailure) {
        let mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        var frame = [(isFinal ? 0x80 : 0) | opcode]
        switch payload.count {
        case ...125: frame.append(0x80 | UInt8(payload.count))
        case ...0xFFFF: frame += [0x80 | 126] + Self.bigEndian(payload.count, 2)
        default: frame += [0x80 | 127] + Self.bigEndian(payload.count, 8)
        }
        try wire.send(frame + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] })
    }

    private static func bigEndian(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
    }

    // MARK: A wire

    func send(_ bytes: [UInt8]) throws(ConformanceFailure) { try sendFrame(2, bytes) }

    func receive(within milliseconds: Int) throws(ConformanceFailure) -> [UInt8]? {
        while true {
            let data = try takeFrames()
            guard data.isEmpty else { return data }
            guard let bytes = try wire.receive(within: milliseconds) else {
                #expect(unread.isEmpty, "the broker closed in the middle of a frame")
                return nil
            }
            guard !bytes.isEmpty else { return [] }
            unread += bytes
        }
    }

    func finish() throws(ConformanceFailure) { try wire.finish() }

    func reset() { wire.reset() }

    func pass(milliseconds: Int) throws(ConformanceFailure) {
        try wire.pass(milliseconds: milliseconds)
    }

    func passUntilClosed(within milliseconds: Int) throws(ConformanceFailure) -> Int? {
        let start = TCPWire.now
        while TCPWire.now - start < milliseconds {
            guard try receive(within: milliseconds - (TCPWire.now - start)) != nil else {
                return TCPWire.now - start
            }
        }
        return nil
    }

    /// The data of the complete frames that have come.
    private func takeFrames() throws(ConformanceFailure) -> [UInt8] {
        var data: [UInt8] = []
        while unread.count >= 2 {
            var (length, place) = (Int(unread[1]), 2)
            let more = length == 126 ? 2 : length == 127 ? 8 : 0
            guard unread.count >= 2 + more else { break }
            if more > 0 {
                length = unread[2..<2 + more].reduce(0) { $0 << 8 | Int($1) }
                place += more
            }
            guard unread[0] & 0xF0 == 0x80, length >= 0, unread[1] & 0x80 == 0 else {
                throw ConformanceFailure("a frame that no server sends: \(unread.prefix(16))")
            }
            guard unread.count >= place + length else { break }
            let payload = unread[place..<place + length]
            switch unread[0] & 0x0F {
            case 2: data += payload
            case 8:
                closeCode = length < 2 ? 1_005 : Int(payload[place]) << 8 | Int(payload[place + 1])
            case 9, 10: break
            // [MQTT-6.0.0-1]
            case let other: throw ConformanceFailure("a frame with opcode \(other)")
            }
            unread.removeFirst(place + length)
        }
        return data
    }
}
