import CNgHTTP2
import HermesTesting
import Testing

@testable import PushServices

@Suite("HTTP/2 without a socket")
struct HTTP2ClientTests {
    private func request() -> RequestFields {
        var fields = RequestFields()
        fields.add(":method", "POST")
        fields.add(":scheme", "https")
        fields.add(":authority", "localhost")
        fields.add(":path", "/3/device/", hexadecimal: [0xAB, 0x01])
        fields.add("apns-id", uuid: (0x0123_4567_89AB_CDEF, 0x8123_4567_89AB_CDEF))
        return fields
    }

    /// A frame (RFC 9113, section 4.1).
    private func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8])
        -> [UInt8]
    {
        let count = payload.count
        return [UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags]
            + (0..<4).map { UInt8(truncatingIfNeeded: stream >> UInt32(24 - 8 * $0)) } + payload
    }

    private var settings: [UInt8] { frame(4, 0, 0, [0, 3, 0, 0, 0, 7]) }

    private func feed(_ client: HTTP2Client, _ bytes: [UInt8], pieces: Int) throws {
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            try Array(bytes[start..<min(start + pieces, bytes.count)]).withUnsafeBytes {
                try client.input($0)
            }
        }
    }

    private func open() throws -> HTTP2Client {
        let client = try HTTP2Client()
        try client.submit(request(), payload: Array("{}".utf8), tag: 5)
        var output: [UInt8] = []
        try client.output(into: &output, most: 16_384)
        #expect(output.starts(with: Array("PRI * HTTP/2.0".utf8)))
        return client
    }

    @Test("an answer comes whole, in pieces of any size", arguments: [1, 2, 3, 9, 1_000])
    func answer(pieces: Int) throws {
        let client = try open()
        // `:status: 400` is entry 12 of the static table (RFC 7541, appendix A).
        let bytes =
            settings + frame(1, 4, 1, [0x8C]) + frame(0, 1, 1, Array(#"{"reason":"X"}"#.utf8))
        try feed(client, bytes, pieces: pieces)
        #expect(client.mostStreams == 7)
        let events = client.takeEvents()
        guard case .answered(5, 400, let body, nil)? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(body == Array(#"{"reason":"X"}"#.utf8))
        #expect(client.openCount == 0)
    }

    @Test("a reset, a refusal and GOAWAY say what was not processed")
    func endings() throws {
        for (code, isUnprocessed) in [(UInt8(7), true), (2, false)] {
            let client = try open()
            try feed(client, settings + frame(3, 0, 1, [0, 0, 0, code]), pieces: 100)
            guard case .ended(5, isUnprocessed)? = client.takeEvents().first else {
                Issue.record("code \(code)")
                continue
            }
        }
        let client = try open()
        try feed(client, settings + frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]), pieces: 100)
        let events = client.takeEvents()
        #expect(events.count == 2)
        #expect(client.isGoingAway && !client.takesRequests && client.openCount == 0)
    }

    @Test("a request that is given up ends")
    func cancelled() throws {
        let client = try open()
        try feed(client, settings, pieces: 100)
        client.cancel(5)
        var output: [UInt8] = []
        try client.output(into: &output, most: 16_384)
        guard case .ended(5, false)? = client.takeEvents().first else {
            Issue.record("no end")
            return
        }
    }

    @Test(
        "whatever a server sends, the request ends once or is open still",
        arguments: 0..<8 as Range<UInt64>)
    func hostile(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let good = settings + frame(1, 4, 1, [0x88]) + frame(7, 0, 0, [0, 0, 0, 1, 0, 0, 0, 0])
        for round in 0..<400 {
            var bytes = good
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                bytes.append(.random(in: 0...255, using: &random))
            }
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = .random(in: 0...255, using: &random)
            }
            let client = try open()
            try? feed(client, bytes, pieces: Int.random(in: 1...50, using: &random))
            let ends = client.takeEvents().count { if case .goAway = $0 { false } else { true } }
            #expect(ends == 1 - client.openCount, "round \(round)")
        }
    }
}
