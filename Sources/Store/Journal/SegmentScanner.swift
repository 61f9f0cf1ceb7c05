/// Finds the intact frames of one segment. Reads through a window of 1 MiB, or of one larger frame.
struct SegmentScanner: ~Copyable {
    struct Frame {
        var header: FrameHeader
        var offset: Int
        /// Valid until the scanner's next call.
        var payload: UnsafeRawBufferPointer

        var payloadOffset: Int { offset + SegmentFormat.frameHeaderSize }
        var end: Int { SegmentFormat.end(ofFrameAt: offset, payload: payload.count) }
    }

    private static let windowSize = 1 << 20

    private let file: SegmentFile
    private let number: UInt64
    private let salt: UInt64
    /// All frames end at this offset at the latest.
    let limit: Int
    private var window: UnsafeMutableRawBufferPointer
    private var windowStart = 0
    private var windowCount = 0

    /// - Parameters:
    ///   - segment: the segment to read.
    ///   - end: the end of the segment's frames, if it is known.
    init(_ segment: borrowing Segment, end: Int?) {
        file = segment.file
        number = segment.header.number
        salt = segment.header.salt
        limit = min(end ?? segment.file.capacity, segment.file.capacity)
        window = .allocate(byteCount: Self.windowSize, alignment: 8)
    }

    deinit { window.deallocate() }

    /// The frame that follows one that ended at `position`; `nil` if it is damaged or missing.
    mutating func frame(following position: Int) throws(StoreFailure) -> Frame? {
        if let frame = try frame(at: position), Int(frame.header.previousEnd) == position {
            return frame
        }
        let block = SegmentFormat.roundedUp(position, to: SegmentFormat.blockSize)
        guard block != position, let frame = try frame(at: block),
            Int(frame.header.previousEnd) == position
        else { return nil }
        return frame
    }

    /// The first intact frame at `position` or behind it.
    mutating func firstFrame(from position: Int) throws(StoreFailure) -> Frame? {
        var offset = SegmentFormat.roundedUp(position, to: SegmentFormat.frameAlignment)
        while offset + SegmentFormat.frameHeaderSize < limit {
            if let frame = try frame(at: offset) { return frame }
            offset += SegmentFormat.frameAlignment
        }
        return nil
    }

    /// Bytes of an incomplete frame behind `position`; 0 if there is no sign of one.
    mutating func tornBytes(following position: Int) throws(StoreFailure) -> Int {
        let block = SegmentFormat.roundedUp(position, to: SegmentFormat.blockSize)
        for offset in Set([position, block]) {
            guard let header = try header(at: offset), Int(header.previousEnd) == position else {
                continue
            }
            let end = SegmentFormat.end(ofFrameAt: offset, payload: Int(header.payloadCount))
            return min(end, limit) - offset
        }
        return 0
    }

    private mutating func frame(at offset: Int) throws(StoreFailure) -> Frame? {
        guard let header = try header(at: offset) else { return nil }
        let count = Int(header.payloadCount)
        guard count > 0, Int(header.previousEnd) <= offset,
            header.syncedEnd <= header.previousEnd,
            SegmentFormat.end(ofFrameAt: offset, payload: count) <= limit,
            let bytes = try bytes(at: offset, count: SegmentFormat.frameHeaderSize + count)
        else { return nil }
        let payload = UnsafeRawBufferPointer(rebasing: bytes[SegmentFormat.frameHeaderSize...])
        let start = header.checksumBeforePayload(segment: number, offset: offset)
        guard crc32c(start, payload) == header.checksum else { return nil }
        return Frame(header: header, offset: offset, payload: payload)
    }

    /// A frame header with this segment's salt, whose checksum is not verified yet.
    private mutating func header(at offset: Int) throws(StoreFailure) -> FrameHeader? {
        guard let bytes = try bytes(at: offset, count: SegmentFormat.frameHeaderSize) else {
            return nil
        }
        let header = FrameHeader(bytes)
        return header.salt == salt ? header : nil
    }

    /// A part of the file, valid until the next call; `nil` beyond the limit or the end of the
    /// file.
    private mutating func bytes(
        at offset: Int, count: Int
    ) throws(StoreFailure) -> UnsafeRawBufferPointer? {
        guard offset + count <= limit else { return nil }
        if offset < windowStart || offset + count > windowStart + windowCount {
            if count > window.count {
                window.deallocate()
                window = .allocate(byteCount: count, alignment: 8)
            }
            let wanted = min(window.count, limit - offset)
            windowStart = offset
            windowCount = 0
            windowCount = try file.read(
                at: offset, into: UnsafeMutableRawBufferPointer(rebasing: window[..<wanted]))
            guard windowCount >= count else { return nil }
        }
        let start = offset - windowStart
        return UnsafeRawBufferPointer(rebasing: window[start..<start + count])
    }
}
