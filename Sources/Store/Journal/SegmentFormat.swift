import CChecksum

/// The bytes of a journal segment; the format is the store's own.
///
/// All numbers are little-endian. A segment is a file of whole blocks of 4,096 bytes, filled with
/// zeros when it was made. Block 0 is the header: 64 bytes at offset 0 and a copy of them at offset
/// 2,048, rewritten at each use of the file.
///
/// | offset | bytes | header |
/// |---|---|---|
/// | 0 | 8 | magic, "HermesJL" |
/// | 8 | 4 | format version: 1; 2 since records `shared` and `sessionEnded` may occur; 3 and 4 since further ones of features may; 5 since `fact`, `newFact`, `factRemoved` and `factsRemoved` take the place of these |
/// | 12 | 4 | zero |
/// | 16 | 8 | number of the segment; rises by at least one with every use of any file |
/// | 24 | 8 | salt, drawn at random for this use |
/// | 32 | 8 | number of the segment before this one; 0 is none |
/// | 40 | 8 | where that segment's frames end, in bytes; 0 is unknown |
/// | 48 | 12 | zero |
/// | 60 | 4 | CRC32C of the bytes before it |
///
/// Every version keeps these places of magic, version and checksum, so that a newer one is told
/// from damage. Frames follow from offset 4,096 on, each at a multiple of 8:
///
/// | offset | bytes | frame |
/// |---|---|---|
/// | 0 | 8 | salt of the segment |
/// | 8 | 4 | bytes of payload, at least 1 |
/// | 12 | 4 | where the frame before it ends; 4,096 for the first |
/// | 16 | 4 | everything below this offset was synced when the frame was written |
/// | 20 | 4 | CRC32C of segment number and offset (8 bytes each), the 20 bytes before, the payload |
/// | 24 | | payload, then zeros up to a multiple of 8, where the frame ends |
///
/// A frame begins where the one before it ends, or, if a sync came between, at the next whole
/// block: **a synced block is never written again**, so neither a torn write nor a failed one can
/// take back what was acknowledged. Writes fill up their last block with zeros.
///
/// Bytes of an earlier use of the file carry another salt and never count.
enum SegmentFormat {
    static let magic: UInt64 = 0x4C4A_7365_6D72_6548
    static let version: UInt32 = 5
    static let blockSize = 4_096
    static let headerSize = 64
    static let headerCopyOffset = 2_048
    static let frameHeaderSize = 24
    static let frameAlignment = 8
    /// The largest payload of a frame. With this limit every offset in a segment fits 32 bits.
    static let maximumPayload = 1 << 30

    static func roundedUp(_ value: Int, to multiple: Int) -> Int {
        (value + multiple - 1) / multiple * multiple
    }

    /// The end of a frame at `offset` with a payload of this size.
    static func end(ofFrameAt offset: Int, payload: Int) -> Int {
        roundedUp(offset + frameHeaderSize + payload, to: frameAlignment)
    }
}

/// The content of a segment's header block.
struct SegmentHeader: Hashable, Sendable {
    var number: UInt64
    var salt: UInt64
    /// Number of the segment before this one; 0 for none.
    var previousNumber: UInt64
    /// End of the previous segment's frames in bytes; 0 for unknown.
    var previousEnd: UInt64

    /// The result of reading a header.
    enum Reading: Hashable {
        /// Only zeros: the file was never used.
        case blank
        case header(SegmentHeader)
        /// Intact, and of this newer version.
        case newer(UInt32)
        case unreadable
    }

    /// The whole header block.
    func block() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: SegmentFormat.blockSize)
        bytes.withUnsafeMutableBytes { block in
            block.put(SegmentFormat.magic, at: 0)
            block.put(SegmentFormat.version, at: 8)
            block.put(number, at: 16)
            block.put(salt, at: 24)
            block.put(previousNumber, at: 32)
            block.put(previousEnd, at: 40)
            block.put(crc32c(0, UnsafeRawBufferPointer(rebasing: block[..<60])), at: 60)
            for index in 0..<SegmentFormat.headerSize {
                block[SegmentFormat.headerCopyOffset + index] = block[index]
            }
        }
        return bytes
    }

    /// Reads a header block, or the part of one that the file has. The first intact copy counts.
    static func read(_ block: UnsafeRawBufferPointer) -> Reading {
        for offset in [0, SegmentFormat.headerCopyOffset]
        where block.count >= offset + SegmentFormat.headerSize {
            let copy = UnsafeRawBufferPointer(
                rebasing: block[offset..<offset + SegmentFormat.headerSize])
            guard copy.get(UInt64.self, at: 0) == SegmentFormat.magic,
                copy.get(UInt32.self, at: 60)
                    == crc32c(0, UnsafeRawBufferPointer(rebasing: copy[..<60]))
            else { continue }
            let version = copy.get(UInt32.self, at: 8)
            guard version <= SegmentFormat.version else { return .newer(version) }
            return .header(
                SegmentHeader(
                    number: copy.get(UInt64.self, at: 16), salt: copy.get(UInt64.self, at: 24),
                    previousNumber: copy.get(UInt64.self, at: 32),
                    previousEnd: copy.get(UInt64.self, at: 40)))
        }
        let isBlank = block.count >= SegmentFormat.blockSize && block.allSatisfy { $0 == 0 }
        return isBlank ? .blank : .unreadable
    }
}

/// The header of a frame.
struct FrameHeader: Hashable, BitwiseCopyable {
    var salt: UInt64
    var payloadCount: UInt32
    var previousEnd: UInt32
    var syncedEnd: UInt32
    var checksum: UInt32 = 0

    init(salt: UInt64, payloadCount: Int, previousEnd: Int, syncedEnd: Int) {
        self.salt = salt
        self.payloadCount = UInt32(payloadCount)
        self.previousEnd = UInt32(previousEnd)
        self.syncedEnd = UInt32(syncedEnd)
    }

    /// Reads the header's 24 bytes.
    init(_ bytes: UnsafeRawBufferPointer) {
        salt = bytes.get(UInt64.self, at: 0)
        payloadCount = bytes.get(UInt32.self, at: 8)
        previousEnd = bytes.get(UInt32.self, at: 12)
        syncedEnd = bytes.get(UInt32.self, at: 16)
        checksum = bytes.get(UInt32.self, at: 20)
    }

    /// Writes the header's 24 bytes.
    func write(to bytes: UnsafeMutableRawBufferPointer) {
        bytes.put(salt, at: 0)
        bytes.put(payloadCount, at: 8)
        bytes.put(previousEnd, at: 12)
        bytes.put(syncedEnd, at: 16)
        bytes.put(checksum, at: 20)
    }

    /// The checksum of place and header; the caller continues it over the payload.
    func checksumBeforePayload(segment: UInt64, offset: Int) -> UInt32 {
        // A tuple of stored words is one run of bytes, so this needs no buffer.
        let words = (
            segment.littleEndian, UInt64(offset).littleEndian, salt.littleEndian,
            (UInt64(payloadCount) | UInt64(previousEnd) << 32).littleEndian, syncedEnd.littleEndian
        )
        return withUnsafeBytes(of: words) {
            crc32c(0, UnsafeRawBufferPointer(rebasing: $0[..<36]))
        }
    }
}

/// Continues the CRC32C `checksum` (0 at the start) over these bytes.
func crc32c(_ checksum: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
    guard let start = bytes.baseAddress else { return checksum }
    return hermes_crc32c(checksum, start, bytes.count)
}

extension UnsafeRawBufferPointer {
    fileprivate func get<Value: FixedWidthInteger & BitwiseCopyable>(
        _ type: Value.Type, at offset: Int
    ) -> Value {
        Value(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }
}

extension UnsafeMutableRawBufferPointer {
    fileprivate func put(_ value: some FixedWidthInteger & BitwiseCopyable, at offset: Int) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: type(of: value))
    }
}
