/// A buffer for parts of journal segments; one part is valid at a time.
///
/// Parts that are asked for in order come from one read; any other part is read alone. Bytes that
/// were read ahead are not read again, so after the segment has been written to, ``forget()`` must
/// be called.
struct SegmentBytes: ~Copyable {
    /// Bytes to read ahead when parts follow each other.
    private static let readAhead = 128 * 1_024
    /// The largest gap between parts that still count as following each other.
    private static let largestGap: UInt32 = 1_024
    /// The most bytes that ``preload(_:_:)`` reads.
    private static let largestPreload: UInt32 = 32 << 20

    private var buffer: UnsafeMutableRawBufferPointer
    /// The segment that the buffer holds, 0 for none; segments are numbered from 1.
    private var segment: UInt64 = 0
    private var start: UInt32 = 0
    private var end: UInt32 = 0
    /// Offset at which the last part ended.
    private var lastEnd: UInt32 = 0

    init() { buffer = .allocate(byteCount: Self.readAhead, alignment: 8) }

    deinit { buffer.deallocate() }

    /// Drops the bytes that were read ahead, and frees a large buffer.
    mutating func forget() {
        segment = 0
        guard buffer.count > Self.readAhead else { return }
        buffer.deallocate()
        buffer = .allocate(byteCount: Self.readAhead, alignment: 8)
    }

    /// Reads everything that a segment's changes need at once, if they need at least a quarter of
    /// it. One read then takes the place of one per message. ``forget()`` frees the memory.
    mutating func preload(
        _ changes: SegmentChanges, _ reader: SegmentReader
    ) throws(StoreFailure) {
        guard let first = changes.messages.first, let last = changes.messages.last else { return }
        let begin = first.topic.offset
        let lastPart = last.messageID ?? last.payload
        let end = lastPart.offset + lastPart.count
        guard end - begin <= Self.largestPreload else { return }
        var needed = 0
        for message in changes.messages {
            needed += Int(message.topic.count) + Int(message.payload.count)
        }
        guard needed >= Int(end - begin) / 4 else { return }
        try fill(
            SegmentChanges.Location(segment: changes.segment, offset: begin, count: end - begin),
            reader, readsAhead: false)
    }

    /// The bytes of a location; valid until the next call.
    mutating func read(
        _ location: SegmentChanges.Location, _ reader: SegmentReader
    ) throws(StoreFailure) -> UnsafeRawBufferPointer {
        let wantedEnd = location.offset + location.count
        let isKnown = segment == location.segment
        defer { lastEnd = wantedEnd }
        if !isKnown || location.offset < start || wantedEnd > end {
            let follows =
                isKnown && location.offset >= lastEnd
                && location.offset - lastEnd <= Self.largestGap
            try fill(location, reader, readsAhead: follows)
        }
        let offset = Int(location.offset - start)
        return UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(buffer)[offset..<offset + Int(location.count)])
    }

    private mutating func fill(
        _ location: SegmentChanges.Location, _ reader: SegmentReader, readsAhead: Bool
    ) throws(StoreFailure) {
        var count = Int(location.count)
        if readsAhead {
            count = max(
                count, min(Self.readAhead, reader.file.capacity - Int(location.offset)))
        }
        segment = 0
        if count > buffer.count {
            buffer.deallocate()
            buffer = .allocate(byteCount: count, alignment: 8)
        }
        try reader.read(
            at: location.offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
        segment = location.segment
        start = location.offset
        end = location.offset + UInt32(count)
    }
}
