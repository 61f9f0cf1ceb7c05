import Glibc

/// One use of a journal file.
struct Segment: Sendable {
    /// The fate of the file when the segment is freed.
    enum Fate {
        case recycled
        /// A write to it failed, so nothing is entrusted to it again.
        case removed
        /// A part of it could not be read.
        case setAside
        /// A part of it could not be read, and the operator has accepted the loss.
        case accepted
    }

    let header: SegmentHeader
    let file: SegmentFile
    /// End of the last frame, in bytes from the beginning of the file.
    private(set) var end = SegmentFormat.blockSize
    /// Everything below this offset is durable.
    var syncedEnd = SegmentFormat.blockSize
    var fate = Fate.recycled
    private(set) var lastFrame: AppendedFrame

    private static let zeros = [UInt8](repeating: 0, count: SegmentFormat.blockSize)

    init(header: SegmentHeader, file: SegmentFile) {
        self.header = header
        self.file = file
        lastFrame = AppendedFrame(segment: header.number, payloadOffset: 0)
    }

    /// Offset at which the next frame begins. A synchronised block is never written again.
    var nextOffset: Int {
        syncedEnd == end ? SegmentFormat.roundedUp(end, to: SegmentFormat.blockSize) : end
    }

    /// Writes a frame, padded with zeros to whole blocks so that the kernel need not read a block
    /// first.
    ///
    /// - Returns: the failure, after which nothing behind the last sync counts; `nil` for success.
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

    /// Ends the segment at its last sync after a failure.
    mutating func retire() {
        end = syncedEnd
        fate = .removed
    }

    /// Sets the end that a replay has found. Everything before it counts as synchronised.
    mutating func finishReplay(end: Int, isDamaged: Bool) {
        self.end = end
        syncedEnd = end
        if isDamaged { fate = .setAside }
    }
}
