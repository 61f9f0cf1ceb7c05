import HermesTesting
import Testing

/// A client that speaks MQTT 5.0. Comparisons leave out what ``Packet5/plain`` names.
extension Client {
    func send5(_ packets: Packet5...) throws { try send(bytes: packets.flatMap(\.bytes)) }

    /// The next packet; `nil` when none comes in time or the connection is closed.
    func next5() throws -> Packet5? { try nextFrame().map { try Packet5(received: $0) } }

    /// Checks that the next packets are exactly these.
    func expect5(_ packets: Packet5..., location: SourceLocation = #_sourceLocation) throws {
        try expect5(packets, location)
    }

    func expect5(_ packets: [Packet5], _ location: SourceLocation = #_sourceLocation) throws {
        var received: [Packet5] = []
        while received.count < packets.count, let packet = try next5() { received.append(packet) }
        try #require(
            received.map(\.plain) == packets.map(\.plain),
            "came: \(received); expected: \(packets)", sourceLocation: location)
    }

    /// Checks that the next packets are these in any order, where the specification allows it.
    func expectInAnyOrder5(
        _ packets: Packet5..., location: SourceLocation = #_sourceLocation
    ) throws {
        var received: [Packet5] = []
        while received.count < packets.count, let packet = try next5() { received.append(packet) }
        try #require(
            received.count == packets.count
                && Set(received.map(\.plain)) == Set(packets.map(\.plain)),
            "came: \(received); expected in any order: \(packets)", sourceLocation: location)
    }

    /// Checks that the broker ends the connection with DISCONNECT of this code and closes it.
    func expectEnd5(_ code: UInt8, _ location: SourceLocation = #_sourceLocation) throws {
        try expect5([.disconnect(code)], location)
        try expectClosed(location)
    }

    /// Checks that the broker refuses CONNECT with this code and closes.
    func expectRefused5(_ code: UInt8, _ location: SourceLocation = #_sourceLocation) throws {
        let packet = try #require(try next5(), "no CONNACK", sourceLocation: location)
        try #require(
            packet.type == 2 && packet.header == [0, code],
            "came: \(packet); expected: CONNACK \(code)", sourceLocation: location)
        try expectClosed(location)
    }

    /// Subscribes and consumes SUBACK, which must grant the QoS; publications are kept.
    func subscribe5(
        _ filter: String, _ options: UInt8, _ properties: [Property5] = [],
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        try send5(.subscribe(0x5B5B, [filter: options], properties))
        try expectAmongPublications5(.suback(0x5B5B, [options & 3]), location)
    }

    /// Unsubscribes and consumes UNSUBACK; publications are kept.
    func unsubscribe5(
        _ filter: String, code: UInt8 = 0, _ location: SourceLocation = #_sourceLocation
    ) throws {
        try send5(.unsubscribe(0x0B0B, [filter]))
        try expectAmongPublications5(.unsuback(0x0B0B, [code]), location)
    }

    /// Publishes and completes the exchange, so that the broker owns the message on return.
    func publish5(
        _ topic: String, _ payload: String, qos: UInt8 = 0, retain: Bool = false,
        _ properties: [Property5] = [], _ location: SourceLocation = #_sourceLocation
    ) throws {
        try send5(.publish(topic, payload, qos: qos, 0x7001, retain: retain, properties))
        switch qos {
        case 0: try fence()
        case 1: try expectAmongPublications5(.puback(0x7001), location)
        default:
            try expectAmongPublications5(.pubrec(0x7001), location)
            try send5(.pubrel(0x7001))
            try expectAmongPublications5(.pubcomp(0x7001), location)
        }
    }

    /// Sends DISCONNECT and waits for the bare close; earlier publications are dropped.
    func disconnect5(
        _ code: UInt8 = 0, _ properties: [Property5] = [],
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        try send5(.disconnect(code, properties))
        while let packet = try next5() {
            try #require(
                packet.type == 3, "\(packet) after DISCONNECT", sourceLocation: location)
        }
        try #require(isClosed, "open after DISCONNECT", sourceLocation: location)
    }

    /// All packets on their way, after a fence of all connections.
    func takeAll5() throws -> [Packet5] {
        try takeAllFrames().map { try Packet5(received: $0) }
    }

    func expectAmongPublications5(
        _ expected: Packet5, _ location: SourceLocation = #_sourceLocation
    ) throws {
        var publications: [[UInt8]] = []
        defer { putBack(publications) }
        while let frame = try nextFrame() {
            if frame[0] >> 4 == 3 {
                publications.append(frame)
                continue
            }
            let packet = try Packet5(received: frame)
            try #require(
                packet.plain == expected.plain, "came: \(packet); expected: \(expected)",
                sourceLocation: location)
            return
        }
        try #require(
            Bool(false), "\(expected) did not come; closed: \(isClosed)", sourceLocation: location)
    }
}
