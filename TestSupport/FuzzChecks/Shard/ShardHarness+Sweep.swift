import BrokerCore
import BrokerFeatures
import BrokerAPI
import HermesTesting
import MQTTCodec

extension ShardHarness {
    /// A client identifier and topic that no program uses.
    private static let sweeper = "the sweeper"

    /// Removes the retained messages of all topics, so that two swept shards hold the same cached
    /// matches and nothing else.
    ///
    /// A client with a shared subscription must be connected: without any, shared matches are
    /// skipped and their cache is not renewed.
    func sweep(_ topics: [[UInt8]]) {
        received = { _, _ in }
        let peer = open()
        let filter = PacketContent.Request("$share/sweeper/\(Self.sweeper)", .atMostOnce)
        let packets: [PacketContent] = [
            .connect(PacketContent.Connect(clientID: Self.sweeper)),
            .subscribe(1, [filter]),
        ]
        for packet in packets {
            guard let bytes = try? packet.encoded() else {
                preconditionFailure("\(packet) could not be encoded")
            }
            deliver(peer, bytes)
        }
        rest()
        for topic in topics {
            shard.publish(
                Publication(topic: topic, payload: [], qos: .atMostOnce, retain: true)
            ) { _ in }
        }
        rest()
        lose(peer)
        rest()
    }

    /// Runs turns in which the disk completes everything.
    private func rest() {
        for _ in 0..<4 {
            store.completeAll()
            turn()
        }
    }
}
