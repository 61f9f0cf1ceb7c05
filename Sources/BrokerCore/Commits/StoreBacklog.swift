import Structures

/// Submitted records that have not completed; clients faster than the disk make them grow.
package struct StoreBacklog: ~Copyable {
    package struct Batch: BitwiseCopyable {
        package var lastTicket: UInt64
        package var bytes: Int
    }

    private var batches = RingBuffer<Batch>()
    package private(set) var bytes = 0

    /// Adds a submitted batch, whose last group has this ticket; 0 bytes if nothing is kept.
    package mutating func add(bytes: Int, through ticket: UInt64) {
        guard bytes > 0 else { return }
        batches.append(Batch(lastTicket: ticket, bytes: bytes))
        self.bytes += bytes
    }

    /// Removes each batch that has completed together with all earlier ones.
    package mutating func complete(_ commits: borrowing CommitLog) {
        while batches.count > 0, commits.areCommitted(through: batches[0].lastTicket) {
            bytes -= batches[0].bytes
            batches.removeFirst()
        }
    }
}
