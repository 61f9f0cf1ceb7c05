import HermesTesting
import MQTTCodec
import Testing

@Suite("6 Using WebSocket as a network transport")
struct WebSocketConformance {
    private static let connect: [UInt8] = [
        0x10, 0x0D, 0x00, 0x04, 0x4D, 0x51, 0x54, 0x54, 0x04, 0x02, 0x00, 0x00, 0x00, 0x01,
    ]

    private func connectBytes(_ name: String) -> [UInt8] {
        let identifier = Array(name.utf8)
        var bytes = Self.connect + identifier
        bytes[1] = UInt8(12 + identifier.count)
        bytes[13] = UInt8(identifier.count)
        return bytes
    }

    @Test(
        "MQTT-6.0.0-1: packets come in binary frames, and any other frame of data closes",
        arguments: Transport.framed)
    func binaryFrames(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for isConnected in [false, true] {
            let frames = try broker.openFrames()
            if isConnected {
                // The wire refuses an answer that is not in a binary frame.
                try frames.sendFrame(2, connectBytes(broker.identifier("binary")))
                #expect(try frames.receive(within: TCPWire.patience) == [0x20, 0x02, 0x00, 0x00])
            }
            try frames.sendFrame(1, isConnected ? [0xC0, 0x00] : connectBytes("text"))
            #expect(try frames.receive(within: TCPWire.patience) == nil)
            #expect(frames.closeCode == 1_003)
        }
    }

    @Test(
        "MQTT-6.0.0-2: a frame holds several packets or a part of one", arguments: Transport.framed)
    func packetsAcrossFrames(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let packets = connectBytes(broker.identifier("frames")) + [0xC0, 0x00, 0xC0, 0x00]
        let answer: [UInt8] = [0x20, 0x02, 0x00, 0x00, 0xD0, 0x00, 0xD0, 0x00]
        for size in 1...packets.count {
            for isFragmented in [false, true] {
                let frames = try broker.openFrames()
                for start in stride(from: 0, to: packets.count, by: size) {
                    let end = min(start + size, packets.count)
                    try frames.sendFrame(
                        isFragmented && start > 0 ? 0 : 2, Array(packets[start..<end]),
                        isFinal: !isFragmented || end == packets.count)
                }
                var received: [UInt8] = []
                while received.count < answer.count,
                    let bytes = try frames.receive(within: TCPWire.patience), !bytes.isEmpty
                {
                    received += bytes
                }
                #expect(received == answer, "in pieces of \(size)")
                frames.reset()
            }
        }
    }

    @Test(
        "MQTT-6.0.0-3: a client that does not offer mqtt gets no connection",
        arguments: Transport.framed)
    func offers(transport: Transport) throws {
        let port = try HermesdProcess.port(transport)
        for offered in [nil, "chat", "MQTT", "mqttv5", "mqtt2, x"] {
            let answer = try WebSocketWire.answer(port: port, offering: offered)
            #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(offered ?? "nothing"): \(answer)")
        }
    }

    @Test(
        "MQTT-6.0.0-4: the broker selects mqtt from what the client offers",
        arguments: Transport.framed)
    func selects(transport: Transport) throws {
        let port = try HermesdProcess.port(transport)
        for offered in ["mqtt", "chat, mqtt", "mqttv3.1, mqtt", "mqtt,mqttv3.1"] {
            let answer = try WebSocketWire.answer(port: port, offering: offered)
            #expect(answer.hasPrefix("HTTP/1.1 101 "), "\(offered)")
            #expect(answer.contains("\r\nSec-WebSocket-Protocol: mqtt\r\n"), "\(answer)")
        }
    }
}
