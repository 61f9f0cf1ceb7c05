/// Reads parts of one segment, from any thread, until the journal frees it.
///
/// The bytes are not checked again: they were checked when they were replayed, or were written by
/// this process.
public struct SegmentReader: Sendable {
    /// The segment's number.
    public let number: UInt64
    let file: SegmentFile

    /// Fills the buffer from offset `offset` of the segment's file on.
    ///
    /// - Throws: `.damaged` if the file ends before the buffer is full.
    public func read(
        at offset: UInt32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(StoreFailure) {
        let count = try file.read(at: Int(offset), into: buffer)
        guard count == buffer.count else {
            throw StoreFailure(
                operation: "read", path: file.path,
                reason: "it ends at byte \(Int(offset) + count), before a message that it held",
                kind: .damaged, cure: "Check the disk, and whether something else wrote the file.")
        }
    }

    /// The bytes of a location in this segment.
    public func bytes(of location: SegmentChanges.Location) throws(StoreFailure) -> [UInt8] {
        precondition(
            location.segment == number,
            "location in segment \(location.segment) read from \(number)")
        var failure: StoreFailure?
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(location.count)) { buffer, count in
            do throws(StoreFailure) {
                let target = UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[..<Int(location.count)])
                try read(at: location.offset, into: target)
                count = Int(location.count)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}
