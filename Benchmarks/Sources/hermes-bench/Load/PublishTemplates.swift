import MQTTCodec

/// The PUBLISH of each publisher, encoded once; a message is a copy with three fields filled in.
struct PublishTemplates: ~Copyable {
    /// Of a whole packet; the same for all publishers.
    let packetBytes: Int
    private let identifierOffset: Int
    private let stampOffset: Int
    private let hasIdentifier: Bool
    private let packets: UnsafeMutableRawPointer

    init(publishers: Int, names: RunNames, payloadBytes: Int, qos: QoS) {
        // Topics of a run are equally long.
        let topicCount = names.topic(0).count
        // The length of no properties stands before the payload, where 5.0 has it.
        let more = ClientPackets.propertyLengthBytes
        packetBytes = PublishEncoder.size(
            topicCount: topicCount, payloadCount: payloadBytes + more, qos: qos)
        stampOffset =
            PublishEncoder.headerSize(
                topicCount: topicCount, payloadCount: payloadBytes + more, qos: qos) + more
        identifierOffset = stampOffset - more - 2
        hasIdentifier = qos != .atMostOnce
        let allBytes = packetBytes * publishers
        packets = .allocate(byteCount: allBytes, alignment: 16)
        packets.initializeMemory(as: UInt8.self, repeating: 0x2E, count: allBytes)
        for publisher in 0..<publishers {
            let packet = packets + publisher * packetBytes
            names.topic(publisher).withUnsafeBytes { topic in
                PublishEncoder.writeHeader(
                    to: packet, topic: topic, payloadCount: payloadBytes + more, qos: qos,
                    retain: false, isDuplicate: false, packetIdentifier: 1)
            }
            if more > 0 { (packet + stampOffset - 1).storeBytes(of: 0, as: UInt8.self) }
            MessageStamp(run: names.run, publisher: UInt32(publisher), sequence: 0, time: 0)
                .write(to: packet + stampOffset)
        }
    }

    deinit { packets.deallocate() }

    /// Writes one message, ``packetBytes`` long.
    ///
    /// Its packet identifier follows from `position`, which counts what its connection has sent.
    func write(
        publisher: Int, sequence: UInt64, position: UInt64, time: UInt64,
        to packet: UnsafeMutableRawPointer
    ) {
        packet.copyMemory(from: packets + publisher * packetBytes, byteCount: packetBytes)
        MessageStamp.write(sequence: sequence, time: time, to: packet + stampOffset)
        guard hasIdentifier else { return }
        PublishEncoder.storeInteger(
            PacketIdentifier(position: position).rawValue, to: packet + identifierOffset)
    }
}
