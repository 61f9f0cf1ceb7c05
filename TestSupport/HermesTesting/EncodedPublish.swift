import MQTTCodec

/// A PUBLISH as a server sends it on: written in place by ``PublishEncoder5``.
package struct EncodedPublish {
    package var bytes: [UInt8]
    package let layout: PublishLayout5

    /// Sends on a decoded packet; with an alias in `hop`, `keepsTopic` says whether the name goes
    /// along.
    package init(
        _ publish: Publish5, in wire: [UInt8], _ hop: PublishHop, keepsTopic: Bool = true
    ) {
        let forwarded = ForwardedProperties(publish.properties, in: wire.span.bytes)
        let topic =
            keepsTopic
            ? publish.topic.name.map { Array(wire[$0.range.start..<$0.range.end]) } ?? [] : []
        let payload = wire[publish.payload.start..<publish.payload.end]
        guard
            let layout = PublishLayout5(
                topicCount: topic.count, payloadCount: payload.count, qos: publish.delivery.qos,
                hop: hop, forwardedCount: forwarded.count)
        else { preconditionFailure("a PUBLISH that was received is too large to send") }
        var isDuplicate = false
        var identifier: UInt16 = 0
        switch publish.delivery {
        case .atMostOnce: break
        case .atLeastOnce(let value, let isAgain), .exactlyOnce(let value, let isAgain):
            (identifier, isDuplicate) = (value.rawValue, isAgain)
        }
        // Guard bytes show what is written beyond the header.
        var output = [UInt8](repeating: 0xEE, count: layout.headerCount + 8)
        output.withUnsafeMutableBytes { output in
            guard let base = output.baseAddress else { return }
            topic.withUnsafeBytes { topic in
                wire.withUnsafeBytes { wire in
                    PublishEncoder5.writeHeader(
                        layout, to: base, topic: topic, qos: publish.delivery.qos,
                        retain: publish.retain, isDuplicate: isDuplicate,
                        packetIdentifier: identifier, hop: hop, forwarded: forwarded,
                        forwardedSource: wire)
                }
            }
        }
        precondition(output.suffix(8).allSatisfy { $0 == 0xEE }, "written beyond the header")
        bytes = output.dropLast(8) + payload
        self.layout = layout
    }
}
