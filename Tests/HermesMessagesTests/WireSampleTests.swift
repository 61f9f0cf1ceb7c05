import CHermesProtos
import Testing

@testable import HermesMessages

/// The client reads and writes the same samples with SwiftProtobuf.
@Suite("protobuf-c and the samples")
struct WireSampleTests {
    @Test("every field of an envelope is read, and written as it was", arguments: [false, true])
    func envelopes(withUnknownFields: Bool) throws {
        for sample in WireSamples.envelopes {
            let bytes = sample.encoded + (withUnknownFields ? WireSamples.unknownFields : [])
            let message = try #require(hermes__v1__envelope__unpack(nil, bytes.count, bytes))
            defer { hermes__v1__envelope__free_unpacked(message, nil) }
            #expect(Self.sample(message.pointee) == sample)
            let size = hermes__v1__envelope__get_packed_size(message)
            let written = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                count = hermes__v1__envelope__pack(message, buffer.baseAddress)
            }
            #expect(written == bytes)
        }
    }

    @Test("packed numbers are read")
    func packed() throws {
        for sample in WireSamples.envelopes {
            let bytes = sample.packed
            let message = try #require(hermes__v1__envelope__unpack(nil, bytes.count, bytes))
            defer { hermes__v1__envelope__free_unpacked(message, nil) }
            #expect(Self.sample(message.pointee) == sample)
        }
    }

    @Test("the broker encodes envelopes so")
    func brokersEnvelopes() throws {
        for var sample in WireSamples.envelopes {
            sample.sequence = 0
            sample.superseded = []
            let envelope = Envelope(
                messageID: sample.messageID, topic: sample.topic, channel: sample.channel,
                publishedAtMs: sample.publishedAtMs, expiresAtMs: sample.expiresAtMs,
                collapseKey: sample.collapseKey, contentType: sample.contentType,
                payload: sample.payload)
            #expect(try envelope.encoded() == sample.encoded)
        }
    }

    @Test("every field of an order status update is read, and written as it was")
    func updates() throws {
        for sample in WireSamples.updates {
            for bytes in [sample.encoded, sample.encodedShort] {
                let read = try #require(
                    hermes__v1__order_status_update__unpack(nil, bytes.count, bytes))
                defer { hermes__v1__order_status_update__free_unpacked(read, nil) }
                let message = read.pointee
                #expect(String(cString: message.order_id) == sample.orderID)
                #expect(String(cString: message.sales_id) == sample.salesID)
                #expect(Int32(truncatingIfNeeded: message.status.rawValue) == sample.status)
                #expect(String(cString: message.reason) == sample.reason)
                #expect(message.updated_at_ms == sample.updatedAtMs)
                let details = try (0..<message.n_details).map { index in
                    let entry = try #require(message.details[index]).pointee
                    return [String(cString: entry.key), String(cString: entry.value)]
                }
                #expect(details == sample.details.map { [$0.key, $0.value] })
                let size = hermes__v1__order_status_update__get_packed_size(read)
                let written = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                    count = hermes__v1__order_status_update__pack(read, buffer.baseAddress)
                }
                #expect(written == sample.encodedShort)
            }
        }
    }

    @Test("every field of a client's report is read, and written as it was")
    func reports() throws {
        for sample in WireSamples.reports {
            for bytes in [sample.encoded, sample.encodedShort] {
                let read = try #require(hermes__v1__client_report__unpack(nil, bytes.count, bytes))
                defer { hermes__v1__client_report__free_unpacked(read, nil) }
                let message = read.pointee
                #expect(message.received == sample.received)
                #expect(message.duplicates == sample.duplicates)
                #expect(message.connects == sample.connects)
                #expect(message.heartbeat_seconds == sample.heartbeatSeconds)
                #expect(message.since_ms == sample.sinceMs)
                #expect(String(cString: message.network) == sample.network)
                #expect(message.lost_connections == sample.lostConnections)
                #expect(message.lost_sessions == sample.lostSessions)
                #expect(message.dropped_at_most_once == sample.droppedAtMostOnce)
                #expect(message.published == sample.published)
                try #require(message.n_losses == sample.losses.count)
                for (index, loss) in sample.losses.enumerated() {
                    let entry = try #require(message.losses[index]).pointee
                    #expect(String(cString: entry.key) == loss.key)
                    #expect(entry.value == loss.value)
                }
                let size = hermes__v1__client_report__get_packed_size(read)
                let written = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                    count = hermes__v1__client_report__pack(read, buffer.baseAddress)
                }
                #expect(written == sample.encodedShort)
            }
        }
    }

    private static func sample(_ message: Hermes__V1__Envelope) -> SampleEnvelope {
        SampleEnvelope(
            messageID: String(cString: message.message_id),
            topic: String(cString: message.topic),
            channel: String(cString: message.channel),
            publishedAtMs: message.published_at_ms, expiresAtMs: message.expires_at_ms,
            collapseKey: String(cString: message.collapse_key),
            contentType: String(cString: message.content_type),
            payload: Array(
                UnsafeBufferPointer(start: message.payload.data, count: message.payload.len)),
            sequence: message.sequence,
            superseded: Array(
                UnsafeBufferPointer(
                    start: message.supersedes_sequence, count: message.n_supersedes_sequence)))
    }
}
