import SwiftProtobuf
import Testing

import HermesClientMessages

/// The broker reads and writes the same samples with protobuf-c.
@Suite("SwiftProtobuf and the samples")
struct WireSampleTests {
    private static let options: BinaryEncodingOptions = {
        var options = BinaryEncodingOptions()
        options.useDeterministicOrdering = true
        return options
    }()

    @Test("every field of an envelope is read, and written as it was", arguments: [false, true])
    func envelopes(withUnknownFields: Bool) throws {
        for sample in WireSamples.envelopes {
            let bytes = sample.encoded + (withUnknownFields ? WireSamples.unknownFields : [])
            let message = try Hermes_V1_Envelope(serializedBytes: bytes)
            #expect(Self.sample(message) == sample)
            #expect(try message.serializedBytes() == bytes)
        }
    }

    @Test("packed numbers are read")
    func packed() throws {
        for sample in WireSamples.envelopes {
            #expect(
                Self.sample(try Hermes_V1_Envelope(serializedBytes: sample.packed)) == sample)
        }
    }

    @Test("every field of an order status update is read, and written as it was")
    func updates() throws {
        for sample in WireSamples.updates {
            for bytes in [sample.encoded, sample.encodedShort] {
                let message = try Hermes_V1_OrderStatusUpdate(serializedBytes: bytes)
                #expect(message.orderID == sample.orderID)
                #expect(message.salesID == sample.salesID)
                #expect(message.status.rawValue == Int(sample.status))
                #expect(message.reason == sample.reason)
                #expect(message.updatedAtMs == sample.updatedAtMs)
                #expect(
                    message.details
                        == Dictionary(uniqueKeysWithValues: sample.details.map { ($0, $1) }))
                #expect(
                    try message.serializedBytes(options: Self.options) as [UInt8] == sample.encoded)
            }
        }
    }

    @Test("every field of a client's report is read, and written as it was")
    func reports() throws {
        for sample in WireSamples.reports {
            for bytes in [sample.encoded, sample.encodedShort] {
                let message = try Hermes_V1_ClientReport(serializedBytes: bytes)
                #expect(message.received == sample.received)
                #expect(message.duplicates == sample.duplicates)
                #expect(message.connects == sample.connects)
                #expect(message.heartbeatSeconds == sample.heartbeatSeconds)
                #expect(message.sinceMs == sample.sinceMs)
                #expect(message.network == sample.network)
                #expect(message.lostConnections == sample.lostConnections)
                #expect(message.lostSessions == sample.lostSessions)
                #expect(message.droppedAtMostOnce == sample.droppedAtMostOnce)
                #expect(message.published == sample.published)
                #expect(
                    message.losses
                        == Dictionary(uniqueKeysWithValues: sample.losses.map { ($0, $1) }))
                #expect(
                    try message.serializedBytes(options: Self.options) as [UInt8] == sample.encoded)
            }
        }
    }

    private static func sample(_ message: Hermes_V1_Envelope) -> SampleEnvelope {
        SampleEnvelope(
            messageID: message.messageID, topic: message.topic, channel: message.channel,
            publishedAtMs: message.publishedAtMs, expiresAtMs: message.expiresAtMs,
            collapseKey: message.collapseKey, contentType: message.contentType,
            payload: Array(message.payload), sequence: message.sequence,
            superseded: message.supersedesSequence)
    }
}
