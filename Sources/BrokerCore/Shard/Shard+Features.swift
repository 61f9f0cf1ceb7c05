import MQTTCodec
import MQTTCore
import Structures

/// What clients publish to the topics of features: to some that go to nobody, and to others on the
/// way to their subscribers.
extension Shard {
    /// True for a topic whose messages a feature takes, and nobody else gets.
    @inline(__always)
    func isFeatureTopic(_ topic: UnsafeRawBufferPointer) -> Bool {
        topic.first == UInt8(ascii: "$") && followers.takes(topic)
    }

    /// Handles a PUBLISH to a topic of a feature. It goes to nobody and is not retained; its
    /// acknowledgement waits until what the feature records is stored. MQTT 3.1.1 has no word for
    /// "refused", so one that cannot be taken is acknowledged, and the feature counts and reports it.
    @inline(never)
    mutating func receiveForFeature(_ handle: Handle, _ publish: IncomingPublish) {
        let session = connections[handle].session
        let payload = publish.payload
        switch publish.delivery {
        case .atMostOnce:
            followers.take(&self, payload, from: session)
            if commits.records.hasUncommittedRecords { commit() }
        case .atLeastOnce(let identifier, _):
            context.counters.publishesReceivedAtLeastOnce += 1
            followers.take(&self, payload, from: session)
            acknowledge(
                handle, .puback, identifier,
                needsCommit: commits.records.hasUncommittedRecords,
                requestBytes: publish.packetBytes)
        case .exactlyOnce(let identifier, _):
            context.counters.publishesReceivedExactlyOnce += 1
            guard !sessions[session].inbound.contains(identifier) else {
                // Acknowledged again but taken once [MQTT-4.3.3-2].
                acknowledge(handle, .pubrec, identifier, needsCommit: false, requestBytes: 0)
                return
            }
            guard sessions[session].inbound.count < context.limits.maxInboundQoS2 else {
                end(handle, .tooManyInboundQoS2)
                return
            }
            sessions[session].inbound.insert(identifier, pool: pool)
            if sessions[session].isPersistent {
                commits.records.inbound(
                    session: sessions[session].number, packetIdentifier: identifier.rawValue)
            }
            followers.take(&self, payload, from: session)
            acknowledge(
                handle, .pubrec, identifier, needsCommit: commits.records.hasUncommittedRecords,
                requestBytes: publish.packetBytes)
        }
    }

    /// True for the topics that features read, and few others: asked for every PUBLISH.
    @inline(__always)
    func mayBeRead(_ topic: UnsafeRawBufferPointer) -> Bool {
        topic.count > 8 && topic.loadUnaligned(as: UInt64.self) == readPrefix
    }

    /// The first eight bytes of a longer text; 0 for none.
    static func firstBytes(of text: StaticString) -> UInt64 {
        guard text.utf8CodeUnitCount >= 8 else { return 0 }
        return UnsafeRawPointer(text.utf8Start).loadUnaligned(as: UInt64.self)
    }
}
