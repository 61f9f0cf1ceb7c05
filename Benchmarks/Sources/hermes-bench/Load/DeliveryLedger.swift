/// Arrivals on each stream (one publisher's messages to one subscriber): in order, late, or
/// duplicate.
struct DeliveryLedger: ~Copyable {
    /// Distance behind the newest message within which late messages are told from duplicates.
    private static var memory: UInt64 { 1_024 }
    private static var wordsPerStream: Int { Int(memory) / 64 }

    enum Arrival {
        /// The next one, after `skipped` that have not arrived.
        case inOrder(skipped: UInt64)
        /// One of those that had been skipped.
        case late
        case duplicate
    }

    private let next: UnsafeMutablePointer<UInt64>
    /// The last 1,024 sequences per stream, as a ring of bits that are set on arrival.
    private let arrived: UnsafeMutablePointer<UInt64>

    init(streams: Int) {
        next = .allocate(capacity: streams)
        next.initialize(repeating: 0, count: streams)
        arrived = .allocate(capacity: streams * Self.wordsPerStream)
        arrived.initialize(repeating: 0, count: streams * Self.wordsPerStream)
    }

    deinit {
        next.deallocate()
        arrived.deallocate()
    }

    /// The sequence expected next on a stream.
    func expected(_ stream: Int) -> UInt64 { next[stream] }

    mutating func record(_ sequence: UInt64, on stream: Int) -> Arrival {
        let expected = next[stream]
        guard sequence < expected else {
            // Bits of a lap ago give way to those of the skipped.
            for skipped in max(expected, sequence &- min(sequence, Self.memory))..<sequence {
                clear(skipped, stream)
            }
            set(sequence, stream)
            next[stream] = sequence + 1
            return .inOrder(skipped: sequence - expected)
        }
        guard expected - sequence <= Self.memory, !isSet(sequence, stream) else {
            return .duplicate
        }
        set(sequence, stream)
        return .late
    }

    private func word(_ sequence: UInt64, _ stream: Int) -> Int {
        stream * Self.wordsPerStream + Int(sequence % Self.memory) / 64
    }

    private func isSet(_ sequence: UInt64, _ stream: Int) -> Bool {
        arrived[word(sequence, stream)] & 1 << (sequence % 64) != 0
    }

    private func set(_ sequence: UInt64, _ stream: Int) {
        arrived[word(sequence, stream)] |= 1 << (sequence % 64)
    }

    private func clear(_ sequence: UInt64, _ stream: Int) {
        arrived[word(sequence, stream)] &= ~(1 << (sequence % 64))
    }
}
