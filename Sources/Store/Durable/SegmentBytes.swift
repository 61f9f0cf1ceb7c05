/// A buffer for parts of journal segments, read one at a time.
struct SegmentBytes: ~Copyable {
    private var buffer: UnsafeMutableRawBufferPointer

    init() { buffer = .allocate(byteCount: 4_096, alignment: 8) }

    deinit { buffer.deallocate() }

    /// The bytes of a location; valid until the next call.
    mutating func read(
        _ location: SegmentChanges.Location, _ segment: SegmentReader
    ) throws(StoreFailure) -> UnsafeRawBufferPointer {
        let count = Int(location.count)
        if count > buffer.count {
            buffer.deallocate()
            buffer = .allocate(byteCount: count, alignment: 8)
        }
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        try segment.read(at: location.offset, into: part)
        return UnsafeRawBufferPointer(part)
    }
}
