/// The batches that wait for the disk. Several batches go to the disk as one frame.
struct BatchQueue {
    /// The records of whole groups, and the tickets that they complete.
    struct Batch: Sendable {
        var bytes: [UInt8]
        var tickets: ClosedRange<UInt64>
        /// By how many bytes the database grows at most by these records.
        var growth = 0
        /// The growth of all batches that were submitted up to this one.
        var submitted = 0
        /// True when its tickets are already reported. With `interval` that is before it is
        /// synchronised.
        var isComplete = false
    }

    /// The most bytes of a frame made of several batches, so that no commit takes too long.
    let largestFrame: Int
    private var batches: [Batch] = []
    /// Buffers of batches that were copied into larger frames, to be used again.
    private var spentBuffers: [[UInt8]] = []

    init(largestFrame: Int) { self.largestFrame = largestFrame }

    var isEmpty: Bool { batches.isEmpty }

    /// The lowest ticket of the waiting batches; `nil` without any.
    var firstTicket: UInt64? { batches.first?.tickets.lowerBound }

    /// By how many bytes the database grows at most by what waits.
    var growth: Int { batches.reduce(0) { $0 + $1.growth } }

    /// Bytes of the records that wait.
    var bytes: Int { batches.reduce(0) { $0 + $1.bytes.count } }

    mutating func append(_ batch: Batch) { batches.append(batch) }

    /// Puts batches back in front of all others, after a frame could not be stored.
    mutating func putBack(_ taken: [Batch]) { batches.insert(contentsOf: taken, at: 0) }

    /// Bytes of the next frame. At least one batch must wait.
    var frameBytes: Int { measureFrame().bytes }

    /// Takes the first batches, as many as fit into one frame, and joins them. At least one batch
    /// must wait.
    mutating func takeFrame() -> Batch {
        let (count, bytes) = measureFrame()
        guard count > 1 else { return batches.removeFirst() }
        var frame = batches[0]
        frame.tickets = frame.tickets.lowerBound...batches[count - 1].tickets.upperBound
        frame.bytes.reserveCapacity(bytes)
        for batch in batches[1..<count] {
            frame.bytes.append(contentsOf: batch.bytes)
            frame.growth += batch.growth
            spentBuffers.append(batch.bytes)
        }
        batches.removeFirst(count)
        return frame
    }

    /// Hands over buffers that may be used again.
    mutating func takeBuffers() -> [[UInt8]] {
        var buffers: [[UInt8]] = []
        swap(&buffers, &spentBuffers)
        return buffers
    }

    /// The number of batches that the next frame takes, and their bytes.
    private func measureFrame() -> (count: Int, bytes: Int) {
        var count = 1
        var bytes = batches[0].bytes.count
        // The tickets of a frame are reported together.
        while count < batches.count, batches[count].isComplete == batches[0].isComplete,
            bytes + batches[count].bytes.count <= largestFrame
        {
            bytes += batches[count].bytes.count
            count += 1
        }
        return (count, bytes)
    }
}
