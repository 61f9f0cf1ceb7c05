/// Batches that wait for the disk, and how they are put together to frames.
struct BatchQueue {
    /// Whole groups as they go to the disk.
    struct Batch: Sendable {
        var bytes: [UInt8]
        var tickets: ClosedRange<UInt64>
        /// Its tickets are reported: with `interval` they are before it is synchronised.
        var isComplete = false
    }

    /// Bytes of a frame of several batches, so that no commit takes too long.
    let largestFrame: Int
    private var batches: [Batch] = []
    /// Of batches that became parts of larger frames, for the next ones.
    private var spentBuffers: [[UInt8]] = []

    init(largestFrame: Int) { self.largestFrame = largestFrame }

    var isEmpty: Bool { batches.isEmpty }

    /// The lowest ticket that waits.
    var firstTicket: UInt64? { batches.first?.tickets.lowerBound }

    mutating func append(_ batch: Batch) { batches.append(batch) }

    /// What was taken waits again, before all else.
    mutating func putBack(_ taken: [Batch]) { batches.insert(contentsOf: taken, at: 0) }

    /// Bytes of the next frame; there must be one.
    var frameBytes: Int { measureFrame().bytes }

    /// Takes as many of the first batches as go into one frame, as one batch; there must be one.
    mutating func takeFrame() -> Batch {
        let (count, bytes) = measureFrame()
        guard count > 1 else { return batches.removeFirst() }
        var frame = batches[0]
        frame.tickets = frame.tickets.lowerBound...batches[count - 1].tickets.upperBound
        frame.bytes.reserveCapacity(bytes)
        for batch in batches[1..<count] {
            frame.bytes.append(contentsOf: batch.bytes)
            spentBuffers.append(batch.bytes)
        }
        batches.removeFirst(count)
        return frame
    }

    /// Buffers that may be used again.
    mutating func takeBuffers() -> [[UInt8]] {
        var buffers: [[UInt8]] = []
        swap(&buffers, &spentBuffers)
        return buffers
    }

    /// How many of the batches the next frame takes, and their bytes.
    private func measureFrame() -> (count: Int, bytes: Int) {
        var count = 1
        var bytes = batches[0].bytes.count
        // A frame is reported as a whole.
        while count < batches.count, batches[count].isComplete == batches[0].isComplete,
            bytes + batches[count].bytes.count <= largestFrame
        {
            bytes += batches[count].bytes.count
            count += 1
        }
        return (count, bytes)
    }
}
