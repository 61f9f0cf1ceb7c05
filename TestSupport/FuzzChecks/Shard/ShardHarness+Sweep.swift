import BrokerCore
import BrokerAPI
import HermesTesting
import MQTTCodec

extension ShardHarness {
    /// The name of nobody else, and the topic that the sweeper asks for.
    private static let sweeper = "the sweeper"

    /// Removes what is retained for each topic, so that two shards that were swept of the same topics
    /// have nothing left but the same cached matches.
    ///
    /// A client with a shared subscription watches: without any, such subscriptions are not matched,
    /// and their cache would keep what it has.
    func sweep(_ topics: [[UInt8]]) {
        received = { _, _ in }
        let peer = open()
        let filter = PacketContent.Request("$share/sweeper/\(Self.sweeper)", .atMostOnce)
        let packets: [PacketContent] = [
            .connect(PacketContent.Connect(clientIdentifier: Self.sweeper)),
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

    /// Some turns in which the disk does all that it was asked for.
    private func rest() {
        for _ in 0..<4 {
            store.completeAll()
            turn()
        }
    }
}
