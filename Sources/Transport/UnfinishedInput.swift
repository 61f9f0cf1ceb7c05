import Structures

/// A connection whose buffers hold the begin of a packet or of a TLS record.
public struct UnfinishedInput: BitwiseCopyable {
    public let connection: Handle
    /// The memory that its buffers take.
    public let bytes: Int
    /// Larger for a packet that began later; `UInt64.max` for small ones, whose begin is not noted.
    let order: UInt64
}

/// The memory that unfinished packets and TLS records take together, and the order in which the large
/// packets began.
struct HeldInput {
    /// From this capacity on, the order of a packet's begin is noted.
    private static var notedBytes: Int { 4 * 1_024 }

    /// Capacity of all buffers that hold unfinished input.
    private(set) var bytes = 0
    /// By index of the connection: the number of its packet in the order of their begins.
    private var order: [UInt32: UInt64] = [:]
    private var lastOrder: UInt64 = 0

    /// The buffer of a TLS record has changed its capacity; 0 is no buffer.
    mutating func noteRecord(from former: Int, to capacity: Int) { bytes += capacity - former }

    /// The packet buffer of the connection at `index` has changed its capacity, where 0 is no buffer;
    /// `isNew` says that another packet begins in it.
    mutating func notePacket(_ index: UInt32, from former: Int, to capacity: Int, isNew: Bool) {
        bytes += capacity - former
        guard capacity >= Self.notedBytes else {
            // Most connections never held so much.
            if former >= Self.notedBytes { order[index] = nil }
            return
        }
        if isNew || order[index] == nil {
            lastOrder &+= 1
            order[index] = lastOrder
        }
    }

    /// The place of the connection's packet in the order of their begins; `UInt64.max` when not noted.
    func order(of index: UInt32) -> UInt64 { order[index] ?? .max }
}
