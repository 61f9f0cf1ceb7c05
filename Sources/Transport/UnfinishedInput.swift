import Structures

/// A connection whose buffers hold an incomplete packet or TLS record, or a token without its
/// CONNECT.
public struct UnfinishedInput: BitwiseCopyable {
    public let connection: Handle
    /// The memory of its buffers in bytes.
    public let bytes: Int
    /// Ascends with the beginning of the packet; `UInt64.max` for small buffers.
    let order: UInt64
}

/// The memory of all input that cannot be used yet, and the order of large packets.
struct HeldInput {
    /// The order of packets is recorded from this capacity on.
    private static var notedBytes: Int { 4 * 1_024 }

    /// Capacity of all buffers with input whose peers owe the rest of a packet or TLS record.
    private(set) var unfinished = 0
    /// Capacity of all buffers with input that the owner holds back: it waits for the broker.
    private(set) var heldBack = 0
    /// Tokens whose owner has not used them.
    private(set) var tokenCount = 0
    /// By connection index: the number of its packet in the order of beginning.
    private var order: [UInt32: UInt64] = [:]
    private var lastOrder: UInt64 = 0

    /// Notes a changed capacity of a TLS record's buffer; 0 means no buffer.
    mutating func noteRecord(from former: Int, to capacity: Int) {
        unfinished += capacity - former
    }

    /// As ``noteRecord(from:to:)``, for the buffer of a token more or less, by `change`.
    mutating func noteToken(from former: Int, to capacity: Int, change: Int) {
        noteRecord(from: former, to: capacity)
        tokenCount += change
    }

    /// Notes that buffers of this capacity are held back from now on; a negative one: no more.
    mutating func noteHeldBack(_ capacity: Int) {
        unfinished -= capacity
        heldBack += capacity
    }

    /// Notes a changed capacity of the packet buffer of the connection at `index`; 0 means no
    /// buffer. `isNew` means that another packet begins in it.
    mutating func notePacket(_ index: UInt32, from former: Int, to capacity: Int, isNew: Bool) {
        unfinished += capacity - former
        guard capacity >= Self.notedBytes else {
            // Saves the lookup for most connections, which never held so much.
            if former >= Self.notedBytes { order[index] = nil }
            return
        }
        if isNew || order[index] == nil {
            lastOrder &+= 1
            order[index] = lastOrder
        }
    }

    /// The connection's place in the order of beginning packets; `UInt64.max` without one.
    func order(of index: UInt32) -> UInt64 { order[index] ?? .max }
}
