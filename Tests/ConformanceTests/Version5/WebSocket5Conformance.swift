import HermesTesting
import Testing

@Suite("MQTT 5.0, 6: using WebSocket as a network transport")
struct WebSocket5Conformance {
    @Test(
        "MQTT5-6.0.0-1, trap 65: packets come in binary frames, and any other frame of data closes",
        arguments: Transport.framed)
    func binaryFrames(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for isConnected in [false, true] {
            let frames = try broker.openFrames()
            let connect = Packet5.connect(broker.identifier("binary")).bytes
            if isConnected {
                // The wire refuses an answer that is not in a binary frame.
                try frames.sendFrame(2, connect)
                #expect(try frames.receive(within: TCPWire.patience)?.starts(with: [0x20]) == true)
            }
            try frames.sendFrame(1, isConnected ? [0xC0, 0x00] : connect)
            while let bytes = try frames.receive(within: TCPWire.patience), !bytes.isEmpty {
                #expect(bytes[0] == 0xE0, "\(WireBytes(bytes))")
            }
            #expect(frames.closeCode == 1_003)
        }
    }

    @Test(
        "MQTT5-6.0.0-2: a frame holds several packets or a part of one", arguments: Transport.framed
    )
    func packetsAcrossFrames(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let packets =
            Packet5.connect(broker.identifier("frames")).bytes
            + Packet5.subscribe(1, [topic: 0]).bytes
            + Packet5.publish(topic, "x", [.user("n", "v")]).bytes + [0xC0, 0x00]
        let answer =
            Packet5.suback(1, [0]).bytes + Packet5.publish(topic, "x", [.user("n", "v")]).bytes
            + [0xD0, 0x00]
        for size in 1...packets.count {
            let frames = try broker.openFrames()
            for start in stride(from: 0, to: packets.count, by: size) {
                try frames.sendFrame(2, Array(packets[start..<min(start + size, packets.count)]))
            }
            var received: [UInt8] = []
            while !(received.suffix(2) == [0xD0, 0x00]),
                let bytes = try frames.receive(within: TCPWire.patience), !bytes.isEmpty
            {
                received += bytes
            }
            let connack = try #require(RawPacket.removeFirst(from: &received))
            #expect(connack[0] == 0x20 && connack[3] == 0)
            #expect(received == answer, "in pieces of \(size): \(WireBytes(received))")
            frames.reset()
        }
    }

    @Test(
        "MQTT5-6.0.0-3, MQTT5-6.0.0-4: the client offers mqtt, and the broker returns it, for 5.0 as for 3.1.1",
        arguments: Transport.framed)
    func subProtocol(transport: Transport) throws {
        let port = try HermesdProcess.port(transport)
        for offered in ["mqtt", "mqttv5, mqtt"] {
            let answer = try WebSocketWire.answer(port: port, offering: offered)
            #expect(answer.contains("\r\nSec-WebSocket-Protocol: mqtt\r\n"), "\(answer)")
        }
        for offered in [nil, "mqttv5", "mqtt5"] {
            let answer = try WebSocketWire.answer(port: port, offering: offered)
            #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(offered ?? "nothing"): \(answer)")
        }
    }
}
