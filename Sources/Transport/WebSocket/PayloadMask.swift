/// The mask of a client's frame (RFC 6455, section 5.3): four bytes, in turn, over the payload.
struct PayloadMask: BitwiseCopyable {
    /// The byte for the next byte of the payload is the lowest.
    private var bytes: UInt32

    /// Reads the four bytes of a header.
    init(at header: UnsafeRawPointer) {
        bytes = UInt32(littleEndian: header.loadUnaligned(as: UInt32.self))
    }

    /// A mask that changes nothing.
    init() { bytes = 0 }

    /// Unmasks the next `count` bytes and moves them to `target`, which is `source` or before it; the two
    /// may overlap.
    @inline(__always)
    mutating func unmask(
        _ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, count: Int
    ) {
        // Each step loads before it stores, and later steps read only bytes beyond those stored.
        var offset = 0
        if count >= 16 {
            let wide = SIMD4<UInt32>(repeating: bytes)
            while offset + 16 <= count {
                let word = (source + offset).loadUnaligned(as: SIMD4<UInt32>.self)
                (target + offset).storeBytes(of: word ^ wide, as: SIMD4<UInt32>.self)
                offset += 16
            }
        }
        while offset + 4 <= count {
            let word = (source + offset).loadUnaligned(as: UInt32.self)
            (target + offset).storeBytes(of: word ^ bytes, as: UInt32.self)
            offset += 4
        }
        while offset < count {
            let byte = (source + offset).load(as: UInt8.self)
            (target + offset).storeBytes(
                of: byte ^ UInt8(truncatingIfNeeded: bytes), as: UInt8.self)
            bytes = bytes >> 8 | bytes << 24
            offset += 1
        }
    }
}
