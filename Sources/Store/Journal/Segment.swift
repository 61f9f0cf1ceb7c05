import Glibc

/// One use of a journal file.
struct Segment: Sendable {
    /// What becomes of the file when the segment is freed.
    enum Fate {
        case recycled
        /// Writing to it failed once: nothing is entrusted to it again.
        case removed
        /// Something in it could not be read.
        case setAside
        /// The same, and the operator has accepted it already.
        case accepted
    }

    let header: SegmentHeader
    let file: SegmentFile
    /// Where the last frame ends, from the beginning of the file.
    private(set) var end = SegmentFormat.blockSize
    /// Everything below is on the disk.
    var syncedEnd = SegmentFormat.blockSize
    var fate = Fate.recycled
    private(set) var lastFrame: AppendedFrame

    private static let zeros = [UInt8](repeating: 0, count: SegmentFormat.blockSize)

    init(header: SegmentHeader, file: SegmentFile) {
        self.header = header
        self.file = file
        lastFrame = AppendedFrame(segment: header.number, payloadOffset: 0)
    }

    /// Where the next frame begins: a synced block is not written again.
    var nextOffset: Int {
        syncedEnd == end ? SegmentFormat.roundedUp(end, to: SegmentFormat.blockSize) : end
    }

    /// Writes a frame, padded with zeros to whole blocks so that no block needs to be read first.
    ///
    /// - Returns: the failure, after which nothing behind the last sync counts; or `nil`.
    mutating func write(
        _ pieces: [UnsafeRawBufferPointer], payloadCount: Int
    ) -> StoreFailure? {
        let offset = nextOffset
        var frame = FrameHeader(
            salt: header.salt, payloadCount: payloadCount, previousEnd: end, syncedEnd: syncedEnd)
        frame.checksum = frame.checksumBeforePayload(segment: header.number, offset: offset)
        for piece in pieces { frame.checksum = crc32c(frame.checksum, piece) }

        let payloadOffset = offset + SegmentFormat.frameHeaderSize
        let payloadEnd = payloadOffset + payloadCount
        let paddedEnd = SegmentFormat.roundedUp(payloadEnd, to: SegmentFormat.blockSize)
        var headerWords: (UInt64, UInt64, UInt64) = (0, 0, 0)
        let failure = withUnsafeMutableBytes(of: &headerWords) { headerBytes in
            frame.write(to: headerBytes)
            return Self.zeros.withUnsafeBytes { zeros in
                var runs: [iovec] = []
                runs.reserveCapacity(pieces.count + 2)
                runs.append(iovec(UnsafeRawBufferPointer(headerBytes)))
                for piece in pieces { runs.append(iovec(piece)) }
                runs.append(
                    iovec(UnsafeRawBufferPointer(rebasing: zeros[..<(paddedEnd - payloadEnd)])))
                return file.write(&runs, at: offset)
            }
        }
        guard failure == nil else { return failure }
        end = SegmentFormat.end(ofFrameAt: offset, payload: payloadCount)
        lastFrame = AppendedFrame(
            segment: header.number, payloadOffset: UInt32(payloadOffset))
        return nil
    }

    /// Ends the segment at its last sync, after a failure.
    mutating func retire() {
        end = syncedEnd
        fate = .removed
    }

    /// Sets the end that a replay has found; it counts as synced.
    mutating func finishReplay(end: Int, isDamaged: Bool) {
        self.end = end
        syncedEnd = end
        if isDamaged { fate = .setAside }
    }
}
