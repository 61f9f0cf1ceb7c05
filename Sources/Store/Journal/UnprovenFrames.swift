/// The last frames of a segment, which may not be on the disk.
struct UnprovenFrames {
    struct Frame {
        /// End of the frame, in bytes from the beginning of the file.
        let end: UInt32
        /// End of the frame before it.
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

    /// End of the frames before them; `nil` if there are none.
    var begin: Int? { frames.first.map { Int($0.previousEnd) } }

    mutating func append(_ frame: SegmentScanner.Frame) {
        frames.append(
            Frame(
                end: UInt32(frame.end), previousEnd: frame.header.previousEnd,
                payloadOffset: UInt32(frame.payloadOffset), payload: [UInt8](frame.payload)))
    }

    /// Removes and returns the frames that were synchronised before a later frame was written,
    /// which that frame's header tells.
    mutating func takeProven(below syncedEnd: UInt32) -> ArraySlice<Frame> {
        let proven = frames.prefix { $0.end <= syncedEnd }
        frames.removeFirst(proven.count)
        return proven
    }
}
