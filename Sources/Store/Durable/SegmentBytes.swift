/// A buffer for parts of journal segments, read one at a time.
///
/// Neighbours that are asked for in order come from one read; anything else is read by itself. What
/// was read ahead is not read again, so the segment must not be written to meanwhile: a part that
/// was written later needs ``forget()`` first.
struct SegmentBytes: ~Copyable {
    /// Bytes read at once where parts follow each other, and the largest gap between those.
    private static let readAhead = 128 * 1_024
    private static let largestGap: UInt32 = 1_024
    /// Bytes of a segment that are read at once.
    private static let largestPreload: UInt32 = 32 << 20

    private var buffer: UnsafeMutableRawBufferPointer
    /// What the buffer holds; segments are numbered from 1.
    private var segment: UInt64 = 0
    private var start: UInt32 = 0
    private var end: UInt32 = 0
    /// Where the last part ended.
    private var lastEnd: UInt32 = 0

    init() { buffer = .allocate(byteCount: Self.readAhead, alignment: 8) }

    deinit { buffer.deallocate() }

    /// Lets go of what was read ahead, and of a large buffer.
    mutating func forget() {
        segment = 0
        guard buffer.count > Self.readAhead else { return }
        buffer.deallocate()
        buffer = .allocate(byteCount: Self.readAhead, alignment: 8)
    }

    /// Reads all of a segment at once that its changes need, if most of it is: one call then takes
    /// the place of one for each message. ``forget()`` gives the memory back.
    mutating func preload(
        _ changes: SegmentChanges, _ reader: SegmentReader
    ) throws(StoreFailure) {
        guard let first = changes.messages.first, let last = changes.messages.last else { return }
        let begin = first.topic.offset
        let end = last.payload.offset + last.payload.count
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
