import MQTTCodec

/// QoS 2 identifiers that a subscriber has acknowledged with PUBREC and the broker not yet released.
struct HeldIdentifiers: ~Copyable {
    private static var wordsPerSubscriber: Int { 1_024 }

    /// A bit per identifier.
    private let bits: UnsafeMutablePointer<UInt64>

    init(subscribers: Int) {
        bits = .allocate(capacity: subscribers * Self.wordsPerSubscriber)
        bits.initialize(repeating: 0, count: subscribers * Self.wordsPerSubscriber)
    }

    deinit { bits.deallocate() }

    /// Notes an identifier; `false` when it is held already.
    mutating func hold(_ identifier: PacketIdentifier, subscriber: Int) -> Bool {
        let word = word(identifier, subscriber)
        guard bits[word] & bit(identifier) == 0 else { return false }
        bits[word] |= bit(identifier)
        return true
    }

    mutating func release(_ identifier: PacketIdentifier, subscriber: Int) {
        bits[word(identifier, subscriber)] &= ~bit(identifier)
    }

    private func word(_ identifier: PacketIdentifier, _ subscriber: Int) -> Int {
        subscriber * Self.wordsPerSubscriber + Int(identifier.rawValue) / 64
    }

    private func bit(_ identifier: PacketIdentifier) -> UInt64 {
        1 << UInt64(identifier.rawValue % 64)
    }
}
