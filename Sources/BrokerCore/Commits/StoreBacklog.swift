import Structures

/// The records that were submitted to the store and have not completed: memory that grows while clients
/// want more stored than the disk takes.
struct StoreBacklog: ~Copyable {
    struct Batch: BitwiseCopyable {
        var lastTicket: UInt64
        var bytes: Int
    }

    private var batches = RingBuffer<Batch>()
    private(set) var bytes = 0

    /// A batch was submitted whose last group has this ticket; a store that keeps nothing gets no bytes.
    mutating func add(bytes: Int, through ticket: UInt64) {
        guard bytes > 0 else { return }
        batches.append(Batch(lastTicket: ticket, bytes: bytes))
        self.bytes += bytes
    }

    /// Forgets the batches that have completed with all before them.
    mutating func complete(_ commits: borrowing CommitLog) {
        while batches.count > 0, commits.areCommitted(through: batches[0].lastTicket) {
            bytes -= batches[0].bytes
            batches.removeFirst()
        }
    }
}
