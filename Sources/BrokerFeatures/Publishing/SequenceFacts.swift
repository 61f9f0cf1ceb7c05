import BrokerCore
import Store

/// The last sequence number of each channel.
///
/// Key: the channel. Value: the number.
extension WriteBatch {
    mutating func sequence(channel: UnsafeRawBufferPointer, number: UInt64) {
        fact(.sequence, of: FactOwner(channel)) {
            $0.putRest(channel)
        } value: {
            $0.put(number)
        }
    }
}

/// The channel and the number of a stored sequence.
func sequence(in fact: StoredFact) throws(DamagedFact) -> (channel: [UInt8], number: UInt64) {
    var value = FactReader(fact.value)
    let number = try value.number()
    try value.finish()
    return ([UInt8](fact.key), number)
}

extension FactTable {
    static var sequence: FactTable { FactTable(number: 1, name: "sequence") }
}

extension StoredTable {
    static let sequences = StoredTable(
        .sequence,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            let (channel, number) = try sequence(in: fact)
            shard.features.requests.restore(channel: channel, number: number)
        })
}
