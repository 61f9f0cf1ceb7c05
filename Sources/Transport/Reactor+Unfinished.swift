import Structures

/// Buffers that hold the begin of a packet or of a TLS record: how much they hold together, and who has
/// held one longest.
extension Reactor {
    /// A connection whose buffers hold input.
    public struct UnfinishedInput: BitwiseCopyable {
        public let connection: Handle
        /// What its buffers take of memory.
        public let bytes: Int
        /// Larger for a packet that began later; `UInt64.max` for small ones, whose begin is not noted.
        let order: UInt64
    }

    /// From here on it is noted when a packet began.
    static var notedInputBytes: Int { 4 * 1_024 }

    /// All that hold input: large ones in the order in which their packets began, small ones behind them.
    /// Looks at every connection.
    public func unfinishedInputs() -> [UnfinishedInput] {
        var inputs: [UnfinishedInput] = []
        for index in 0..<slots.endIndex where slots[index].descriptor >= 0 {
            var bytes = Int(slots[index].inputCapacity)
            if let record = Self.securedIndex(slots[index].security) {
                bytes += Int(secured[record].inputCapacity)
            }
            guard bytes > 0 else { continue }
            inputs.append(
                UnfinishedInput(
                    connection: Handle(index: index, generation: slots[index].generation),
                    bytes: bytes, order: inputOrder[index] ?? .max))
        }
        inputs.sort { ($0.order, $1.bytes) < ($1.order, $0.bytes) }
        return inputs
    }

    /// Forgets what was kept of a connection that is answered and only has to go: nobody reads it. The
    /// begin of a TLS record stays, so that the next bytes are what they are.
    public mutating func discardKeptInput(_ handle: Handle) {
        guard slots[handle.index].generation == handle.generation else { return }
        releaseInput(handle.index)
    }

    /// A buffer for input came (`bytes` more than before) or went; `capacity` is what there is now, 0 for
    /// none. `isNew` says that another packet begins in it.
    mutating func noteInput(_ index: UInt32, _ bytes: Int, capacity: Int, isNew: Bool) {
        heldInputBytes += bytes
        guard capacity >= Self.notedInputBytes else {
            // Most connections never held so much.
            if bytes <= -Self.notedInputBytes { inputOrder[index] = nil }
            return
        }
        if isNew || inputOrder[index] == nil {
            inputCount &+= 1
            inputOrder[index] = inputCount
        }
    }
}
