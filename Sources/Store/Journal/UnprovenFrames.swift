/// The last frames of a segment, of which nothing tells whether they are on the disk.
struct UnprovenFrames {
    struct Frame {
        /// Where the frame ends, and where the one before it does, in the file.
        let end: UInt32
        let previousEnd: UInt32
        let payloadOffset: UInt32
        let payload: [UInt8]

        /// Passes the payload on as that of a frame in this segment, at this offset of its file.
        func handOver(
            _ segment: UInt64, _ offset: UInt32, _ body: Journal.Body
        ) throws(StoreFailure) {
            try payload.withUnsafeBufferPointer { (bytes) throws(StoreFailure) in
                try body(segment, offset, UnsafeRawBufferPointer(bytes))
            }
        }
    }

    private(set) var frames: [Frame] = []

    /// Where the proven frames before them end; `nil` if there are none.
    var begin: Int? { frames.first.map { Int($0.previousEnd) } }

    mutating func append(_ frame: SegmentScanner.Frame) {
        frames.append(
            Frame(
                end: UInt32(frame.end), previousEnd: frame.header.previousEnd,
                payloadOffset: UInt32(frame.payloadOffset), payload: [UInt8](frame.payload)))
    }

    /// Takes out what was synced when a later frame was written, which says so.
    mutating func takeProven(below syncedEnd: UInt32) -> ArraySlice<Frame> {
        let proven = frames.prefix { $0.end <= syncedEnd }
        frames.removeFirst(proven.count)
        return proven
    }
}
