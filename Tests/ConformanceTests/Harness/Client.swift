import HermesTesting
import MQTTCodec
import Testing

/// The client's end of a connection: sends packets, and checks exactly what arrives.
///
/// Received bytes are kept until the test asks for them, packet by packet.
final class Client {
    private let wire: any ConformanceWire
    private let broker: BrokerUnderTest
    /// Bytes of an incomplete packet.
    private var partial: [UInt8] = []
    private var arrived: [[UInt8]] = []
    private var isAccepted = false
    /// Something was sent since the last fence.
    private var hasSent = false
    /// The broker has closed the connection, and all earlier bytes were read.
    private(set) var isClosed = false
    /// The CONNACK of MQTT 5.0 that accepted this client.
    var connack: Packet5?

    init(_ wire: any ConformanceWire, of broker: BrokerUnderTest) {
        self.wire = wire
        self.broker = broker
    }

    // MARK: Sending

    func send(_ packets: PacketContent...) throws {
        try send(bytes: packets.flatMap { try $0.encoded() })
    }

    func send(wire: WireBytes) throws { try send(bytes: wire.bytes) }

    func send(bytes: [UInt8]) throws {
        hasSent = true
        try wire.send(bytes)
    }

    /// Sends the beginning of a packet: no fence may follow on this connection.
    func send(part bytes: [UInt8]) throws {
        try wire.send(bytes)
        isAccepted = false
    }

    /// Subscribes and consumes SUBACK, which must grant the QoS; publications are kept.
    func subscribe(
        _ filter: String, _ qos: QoS, _ location: SourceLocation = #_sourceLocation
    ) throws {
        try subscribe([PacketContent.Request(filter, qos)], location)
    }

    func subscribe(
        _ requests: [PacketContent.Request], _ location: SourceLocation = #_sourceLocation
    ) throws {
        try send(.subscribe(0x5B5B, requests))
        try expectAmongPublications(.suback(0x5B5B, requests.map(\.qos.rawValue)), location)
    }

    /// Unsubscribes and consumes UNSUBACK; publications are kept.
    func unsubscribe(
        _ filters: String..., location: SourceLocation = #_sourceLocation
    ) throws {
        try send(.unsubscribe(0x0B0B, filters.map { Array($0.utf8) }))
        try expectAmongPublications(.unsuback(0x0B0B), location)
    }

    /// Publishes and completes the exchange, so that the broker owns the message on return.
    func publish(
        _ topic: String, _ payload: String, qos: QoS = .atMostOnce, retain: Bool = false,
        location: SourceLocation = #_sourceLocation
    ) throws {
        try send(.publish(topic, payload, qos: qos, 0x7001, retain: retain))
        switch qos {
        case .atMostOnce:
            try fence()
        case .atLeastOnce:
            try expectAmongPublications(.puback(0x7001), location)
        case .exactlyOnce:
            try expectAmongPublications(.pubrec(0x7001), location)
            try send(.pubrel(0x7001))
            try expectAmongPublications(.pubcomp(0x7001), location)
        }
    }

    /// Completes the exchange of a received PUBLISH.
    func acknowledge(
        _ identifier: PacketIdentifier, _ qos: QoS, location: SourceLocation = #_sourceLocation
    ) throws {
        switch qos {
        case .atMostOnce:
            return
        case .atLeastOnce:
            try send(.puback(identifier))
        case .exactlyOnce:
            try send(.pubrec(identifier))
            try expectAmongPublications(.pubrel(identifier), location)
            try send(.pubcomp(identifier))
        }
    }

    // MARK: Leaving

    /// Sends DISCONNECT and waits for the close; earlier publications are dropped.
    func disconnect(_ location: SourceLocation = #_sourceLocation) throws {
        try send(.disconnect)
        while let frame = try nextFrame() {
            guard frame[0] >> 4 == PacketType.publish.rawValue else {
                Issue.record("\(WireBytes(frame)) after DISCONNECT", sourceLocation: location)
                return
            }
        }
        try #require(isClosed, "open after DISCONNECT", sourceLocation: location)
    }

    /// Closes without DISCONNECT; the broker has noticed on return.
    func finish() throws {
        try wire.finish()
        isClosed = true
    }

    /// Breaks the connection; over TCP by a reset.
    func reset() {
        wire.reset()
        isClosed = true
    }

    /// Connects with the same client identifier; returns when the broker has closed this
    /// connection.
    func replace(by connect: PacketContent) throws {
        let other = try broker.open()
        try other.send(connect)
        guard case .connack(let connack)? = try other.next(), connack.returnCode == .accepted
        else { throw ConformanceFailure("the second connection was not accepted") }
        try expectClosed()
    }

    // MARK: What comes

    /// Checks that the next packets are exactly these.
    func expect(
        _ packets: PacketContent..., location: SourceLocation = #_sourceLocation
    ) throws {
        try expect(packets, location)
    }

    func expect(
        _ packets: [PacketContent], _ location: SourceLocation = #_sourceLocation
    ) throws {
        let received = try take(packets.count)
        try #require(
            received == packets, "came: \(text(received)); expected: \(text(packets))",
            sourceLocation: location)
    }

    /// Checks that the next packets are these in any order, where the specification allows it.
    func expectInAnyOrder(
        _ packets: PacketContent..., location: SourceLocation = #_sourceLocation
    ) throws {
        let received = try take(packets.count)
        try #require(
            received.count == packets.count && Set(received) == Set(packets),
            "came: \(text(received)); expected in any order: \(text(packets))",
            sourceLocation: location)
    }

    /// Checks that the next bytes are exactly these whole packets.
    func expectBytes(
        _ expected: [UInt8], _ location: SourceLocation = #_sourceLocation
    ) throws {
        var received: [UInt8] = []
        while received.count < expected.count, let frame = try nextFrame() {
            received.append(contentsOf: frame)
        }
        try #require(
            received == expected, "came: \(WireBytes(received)); expected: \(WireBytes(expected))",
            sourceLocation: location)
    }

    /// Checks that nothing has arrived and nothing is on its way, after a fence of all connections.
    func expectNothing(_ location: SourceLocation = #_sourceLocation) throws {
        try broker.fence()
        try fence()
        try #require(
            arrived.isEmpty, "came: \(arrived.map { WireBytes($0) }); expected: nothing",
            sourceLocation: location)
        try #require(!isClosed, "the broker closed the connection", sourceLocation: location)
    }

    /// Checks that the broker closes the connection and sends nothing before.
    func expectClosed(_ location: SourceLocation = #_sourceLocation) throws {
        var received: [[UInt8]] = []
        while let frame = try nextFrame() { received.append(frame) }
        try #require(
            received.isEmpty, "came: \(received.map { WireBytes($0) }); expected: a bare close",
            sourceLocation: location)
        try #require(isClosed, "the broker left the connection open", sourceLocation: location)
    }

    /// All packets on their way, after a fence of all connections.
    func takeAll() throws -> [PacketContent] { try takeAllFrames().map { try decode($0) } }

    /// The same as bytes.
    func takeAllFrames() throws -> [[UInt8]] {
        try broker.fence()
        if !isClosed { try fence() }
        defer { arrived.removeAll() }
        return arrived
    }

    /// The next packet; `nil` when none comes in time or the connection is closed.
    func next() throws -> PacketContent? {
        try nextFrame().map { try decode($0) }
    }

    // MARK: Fences and time

    var needsFence: Bool { isAccepted && hasSent && !isClosed }

    /// Waits for PINGRESP: the broker's packets for earlier events come before it.
    func fence() throws {
        try wire.send([0xC0, 0x00])
        var passed: [[UInt8]] = []
        while let frame = try nextFrame() {
            guard frame != [0xD0, 0x00] else {
                // Bytes after the PINGRESP are kept too.
                arrived = passed + arrived
                hasSent = false
                return
            }
            passed.append(frame)
        }
        arrived = passed
        guard isClosed else { throw ConformanceFailure("no PINGRESP came") }
    }

    func pass(milliseconds: Int) throws { try wire.pass(milliseconds: milliseconds) }

    /// Milliseconds until the broker closed the connection; `nil` when it stayed open.
    func passUntilClosed(within milliseconds: Int) throws -> Int? {
        try wire.passUntilClosed(within: milliseconds)
    }

    // MARK: Private

    private func take(_ count: Int) throws -> [PacketContent] {
        var packets: [PacketContent] = []
        while packets.count < count, let packet = try next() { packets.append(packet) }
        return packets
    }

    private func expectAmongPublications(
        _ expected: PacketContent, _ location: SourceLocation
    ) throws {
        var publications: [[UInt8]] = []
        defer { putBack(publications) }
        while let frame = try nextFrame() {
            if frame[0] >> 4 == PacketType.publish.rawValue {
                publications.append(frame)
                continue
            }
            let packet = try decode(frame)
            try #require(
                packet == expected, "came: \(text([packet])); expected: \(text([expected]))",
                sourceLocation: location)
            return
        }
        try #require(
            Bool(false), "\(text([expected])) did not come; closed: \(isClosed)",
            sourceLocation: location)
    }

    /// The bytes of the next packet; `nil` when none comes in time or the connection is closed.
    func nextFrame() throws -> [UInt8]? {
        while arrived.isEmpty, !isClosed {
            guard let bytes = try wire.receive(within: TCPWire.patience) else {
                isClosed = true
                return nil
            }
            guard !bytes.isEmpty else { return nil }
            partial.append(contentsOf: bytes)
            while let frame = RawPacket.removeFirst(from: &partial) {
                // The return code of 3.1.1 and the reason code of 5.0 are in the same place.
                if frame.count >= 4, frame[0] == 0x20, frame[3] == 0 { isAccepted = true }
                arrived.append(frame)
            }
        }
        return arrived.isEmpty ? nil : arrived.removeFirst()
    }

    /// Puts packets back, so that they are the next ones.
    func putBack(_ frames: [[UInt8]]) { arrived = frames + arrived }

    private func decode(_ frame: [UInt8]) throws -> PacketContent {
        guard let packet = try PacketContent.decode(frame).first else {
            throw ConformanceFailure("no packet: \(WireBytes(frame))")
        }
        return packet
    }

    private func text(_ packets: [PacketContent]) -> String {
        let texts = packets.map { packet in
            (try? packet.encoded()).map { WireBytes($0).description } ?? "\(packet)"
        }
        return texts.isEmpty ? "nothing" : texts.joined(separator: " | ")
    }
}
