/// How large a journal is on the disk.
public struct JournalOptions: Hashable, Sendable {
    /// Bytes of a segment's file, rounded up to whole blocks of 4,096; at least 65,536.
    public var segmentBytes: Int
    /// Files that are kept; a frame that is larger than a segment, or a failed disk, can make more
    /// for a while.
    public var segmentCount: Int

    public init(segmentBytes: Int = 16 << 20, segmentCount: Int = 8) {
        precondition(segmentBytes >= 65_536, "journal segments of \(segmentBytes) bytes")
        precondition(segmentBytes <= SegmentFormat.maximumPayload, "\(segmentBytes) bytes")
        precondition(segmentCount >= 2, "journal of \(segmentCount) segments")
        self.segmentBytes = SegmentFormat.roundedUp(segmentBytes, to: SegmentFormat.blockSize)
        self.segmentCount = segmentCount
    }
}

/// Where a frame's payload lies.
public struct AppendedFrame: Hashable, Sendable, BitwiseCopyable {
    public let segment: UInt64
    /// From the beginning of the segment's file, in bytes.
    public let payloadOffset: UInt32
}

/// A log of frames in recycled files: a frame is durable once ``sync()`` has returned.
///
/// Used by one thread at a time. Its life:
///
/// ```
/// init ─ replayAndBegin ─> active ─ append, sync, … ─ isFull? beginSegment ─> active
///                            │ a write or a sync fails
///                            v
///                          failed ─ restart ─> active: the caller appends again what was not synced
/// ```
///
/// ``replay(_:)`` only reads; a ``beginSegment(payloadBytes:)`` may follow it, too.
///
/// Segments pile up until ``free(through:)`` gives them back. ``SegmentFormat`` describes the bytes.
public struct Journal: ~Copyable, Sendable {
    let options: JournalOptions
    let directory: JournalDirectory
    /// What the database has; frames of these segments are never looked at.
    let appliedSegment: UInt64
    /// In use, by rising number; the last one is written to if `isActive`.
    var segments: [Segment]
    private var freeFiles: [SegmentFile] = []
    /// Files that could not be identified, until the replay reports them.
    var unidentified: [FoundFiles.Unidentified]
    /// The highest number found in a file; 0 is none.
    let highestFound: UInt64
    /// The highest number that was ever given.
    var highestNumber: UInt64
    /// The highest number that the database has.
    private var freedNumber: UInt64
    private var nextIndex: Int
    private var hasPendingSpare = false
    private var isActive = false
    var isReplayed = false
    /// Files with damage that were set aside, now or by an earlier process, and still are there.
    public internal(set) var setAsideFiles: [String]
    /// Why the active segment is not written to any more; ``restart(payloadBytes:)`` ends that.
    public private(set) var failure: StoreFailure?

    /// Opens the journal in this directory, which is made if it is missing; nothing is read but
    /// the headers.
    ///
    /// - Parameters:
    ///   - path: the directory, which belongs to the caller's process alone.
    ///   - options: the size; files of another size than these say are replaced as they are freed.
    ///   - appliedSegment: the number that the database recorded last; 0 is none.
    /// - Throws: `.newerFormat` if a newer version of this program wrote a file.
    public init(
        directory path: String, options: JournalOptions = JournalOptions(), appliedSegment: UInt64
    ) throws(StoreFailure) {
        let directory = try JournalDirectory(path)
        let found = try FoundFiles(in: directory, appliedSegment: appliedSegment)
        self.options = options
        self.directory = directory
        self.appliedSegment = appliedSegment
        segments = found.segments
        unidentified = found.unidentified
        setAsideFiles = found.setAside
        highestFound = found.highestNumber
        highestNumber = max(appliedSegment, found.highestNumber)
        freedNumber = appliedSegment
        nextIndex = found.highestIndex + 1
        for file in found.unused { recycle(file) }
    }

    // MARK: State

    /// The segment that frames are appended to.
    public var activeSegment: UInt64? { isActive ? segments.last?.header.number : nil }

    /// Numbers of the segments that hold frames which the database may not have, rising; the active
    /// one is the last.
    public var segmentNumbers: [UInt64] { segments.map(\.header.number) }

    /// Bytes of the segments in use, from each one's beginning to the end of its last frame.
    public var usedBytes: Int { segments.reduce(0) { $0 + $1.end } }

    /// Bytes of all files.
    public var diskBytes: Int {
        segments.reduce(0) { $0 + $1.file.capacity }
            + freeFiles.reduce(0) { $0 + $1.capacity }
    }

    /// True if another segment can be begun without more files than the options allow.
    public var hasFreeSegment: Bool { !freeFiles.isEmpty || fileCount < options.segmentCount }

    /// True if frames were appended that no ``sync()`` has covered.
    public var hasUnsyncedFrames: Bool {
        guard isActive, let active = segments.last else { return false }
        return active.syncedEnd < active.end
    }

    /// True if a frame with that payload needs another segment; also while there is none.
    public func isFull(for payloadBytes: Int) -> Bool {
        guard isActive, let active = segments.last else { return true }
        return SegmentFormat.end(ofFrameAt: active.nextOffset, payload: payloadBytes)
            > active.file.capacity
    }

    /// Whether the next segment names this one as the one before it, so that a replay would miss it.
    public func isNamedByNext(_ number: UInt64) -> Bool {
        segments.contains {
            $0.header.number == number && $0.syncedEnd > SegmentFormat.blockSize
        }
    }

    /// Reads parts of a segment in use, from any thread.
    public func reader(of number: UInt64) -> SegmentReader? {
        segments.last { $0.header.number == number }
            .map { SegmentReader(number: number, file: $0.file) }
    }

    // MARK: Writing

    /// Writes one frame that holds the pieces one behind the other; ``sync()`` makes it durable.
    ///
    /// The frame must fit: ask ``isFull(for:)`` first.
    ///
    /// - Parameter pieces: at least one byte together.
    /// - Returns: where the payload is now.
    /// - Throws: whatever the write met. The segment counts as failed from then on.
    public mutating func append(
        _ pieces: [UnsafeRawBufferPointer]
    ) throws(StoreFailure) -> AppendedFrame {
        if let failure { throw failure }
        precondition(isActive, "append without a segment")
        let count = pieces.reduce(0) { $0 + $1.count }
        precondition(count > 0 && count <= SegmentFormat.maximumPayload, "frame of \(count) bytes")
        precondition(!isFull(for: count), "frame of \(count) bytes does not fit its segment")
        let last = segments.count - 1
        if let failure = segments[last].write(pieces, payloadCount: count) {
            self.failure = failure
            throw failure
        }
        return segments[last].lastFrame
    }

    /// Makes all appended frames durable.
    ///
    /// - Throws: whatever the call met. The segment counts as failed from then on: what was
    ///   appended since the last sync may or may not be on the disk.
    public mutating func sync() throws(StoreFailure) {
        if let failure { throw failure }
        guard hasUnsyncedFrames else { return }
        let last = segments.count - 1
        do throws(StoreFailure) {
            try segments[last].file.synchronize()
        } catch {
            failure = error
            throw error
        }
        segments[last].syncedEnd = segments[last].end
    }

    /// Goes on in the next segment, after a sync of the current one if it needs any.
    ///
    /// Takes a free file, or makes one, even beyond the number of files in the options; a payload
    /// that is larger than a segment gets a file of its own size, which is deleted once freed.
    ///
    /// - Parameter payloadBytes: the payload that must fit.
    /// - Throws: whatever making or writing the file met; the journal is as before, and can be
    ///   used on, unless the sync made ``failure`` appear.
    public mutating func beginSegment(payloadBytes: Int = 1) throws(StoreFailure) {
        precondition(isReplayed, "segment begun before the replay")
        try sync()
        let file = try takeFile(
            capacity: capacity(upTo: Self.end(ofFrames: CollectionOfOne(payloadBytes))))
        try begin(in: file)
    }

    /// A free file, or a new one.
    mutating func takeFile(capacity: Int) throws(StoreFailure) -> SegmentFile {
        if capacity == options.segmentBytes, let file = freeFiles.popLast() { return file }
        return try makeFile(capacity: capacity)
    }

    /// Bytes of a segment whose frames end at this offset.
    func capacity(upTo end: Int) -> Int {
        max(SegmentFormat.roundedUp(end, to: SegmentFormat.blockSize), options.segmentBytes)
    }

    /// Where frames with these payloads end that stand one behind the other, with no sync between.
    static func end(ofFrames payloads: some Sequence<Int>) -> Int {
        payloads.reduce(SegmentFormat.blockSize) { SegmentFormat.end(ofFrameAt: $0, payload: $1) }
    }

    /// Goes on after a failed write or sync, in a new file; the failed one is never written again.
    ///
    /// The caller appends again what it had appended since the last sync: those frames of the
    /// failed segment do not count any more. What was synced there stays readable.
    ///
    /// - Parameter payloadBytes: the payload that must fit.
    /// - Throws: whatever making or writing the file met; the journal is as before.
    public mutating func restart(payloadBytes: Int = 1) throws(StoreFailure) {
        precondition(failure != nil, "restart of a journal that has not failed")
        let capacity = capacity(upTo: Self.end(ofFrames: CollectionOfOne(payloadBytes)))
        let file: SegmentFile
        do throws(StoreFailure) {
            file = try makeFile(capacity: capacity)
        } catch {
            // A full disk: a file that has its space already, and never failed, is as good.
            guard capacity == options.segmentBytes, let free = freeFiles.popLast() else {
                throw error
            }
            file = free
        }
        try begin(in: file)
    }

    /// Goes on in this file, which is deleted if that fails; `fill` does what has to be done with the
    /// segment before its header makes it count.
    mutating func begin(
        in file: SegmentFile, fill: (inout Segment) throws(StoreFailure) -> Void = { _ in }
    ) throws(StoreFailure) {
        // The number is spent even if the header cannot be written: the file might carry it.
        highestNumber += 1
        let previous = previousLink
        let header = SegmentHeader(
            number: highestNumber, salt: .random(in: 1...UInt64.max),
            previousNumber: previous.number, previousEnd: previous.end)
        var segment = Segment(header: header, file: file)
        do throws(StoreFailure) {
            try fill(&segment)
            if let writing = header.block().withUnsafeBytes({ file.write($0, at: 0) }) {
                throw writing
            }
        } catch {
            SegmentFile.remove(file.path)
            throw error
        }
        if failure != nil { segments[segments.count - 1].retire() }
        segments.append(segment)
        isActive = true
        failure = nil
    }

    /// What the next segment says about the one before it.
    private var previousLink: (number: UInt64, end: UInt64) {
        guard let last = segments.last else { return (freedNumber, 0) }
        // Frames behind the last sync of a failed segment were never acknowledged, and their like
        // follows in the next one.
        if last.syncedEnd > SegmentFormat.blockSize {
            return (last.header.number, UInt64(last.syncedEnd))
        }
        // A segment without a synced frame may never have reached the disk: nobody shall miss it.
        return (last.header.previousNumber, last.header.previousEnd)
    }

    // MARK: Recycling

    /// Gives back segments up to this number, whose frames the database has now; never the active
    /// one. No reader may use them any more.
    public mutating func free(through number: UInt64) {
        precondition(activeSegment.map { number < $0 } ?? true, "segment \(number) is active")
        while let segment = segments.first, segment.header.number <= number {
            segments.removeFirst()
            freedNumber = segment.header.number
            switch segment.fate {
            case .recycled: recycle(segment.file)
            case .removed: SegmentFile.remove(segment.file.path)
            case .setAside: setAside(segment.file)
            case .accepted:
                let path = setAside(segment.file)
                if JournalDirectory.accept(path) { setAsideFiles.removeAll { $0 == path } }
            }
        }
    }

    /// A file to be made ahead of time, on another thread; `nil` if none is needed.
    ///
    /// Every request ends with ``finishSpare(_:)``.
    public mutating func spareRequest() -> SpareRequest? {
        guard freeFiles.isEmpty, !hasPendingSpare, fileCount < options.segmentCount else {
            return nil
        }
        hasPendingSpare = true
        return SpareRequest(
            path: takePath(), capacity: options.segmentBytes, directory: directory)
    }

    /// Takes what the request has made; `nil` if that failed.
    public mutating func finishSpare(_ file: SegmentFile?) {
        precondition(hasPendingSpare, "spare segment that nobody asked for")
        hasPendingSpare = false
        if let file { freeFiles.append(file) }
    }

    private var fileCount: Int { segments.count + freeFiles.count + (hasPendingSpare ? 1 : 0) }

    /// Takes a file back, for another use or to be deleted.
    mutating func recycle(_ file: SegmentFile) {
        if file.capacity == options.segmentBytes && fileCount < options.segmentCount {
            freeFiles.append(file)
        } else {
            SegmentFile.remove(file.path)
        }
    }

    /// Keeps a damaged file for the operator, and returns its path. If it cannot be renamed, it stays
    /// where it is, and the next start tries again.
    @discardableResult
    mutating func setAside(_ file: SegmentFile) -> String {
        guard let path = try? directory.setAside(file.path) else { return file.path }
        setAsideFiles.append(path)
        return path
    }

    /// The operator has seen what was damaged: the files stay under another name, and are forgotten,
    /// those that are still needed as soon as they are freed.
    ///
    /// - Returns: the paths that they had; one that cannot be renamed is damage still.
    mutating func acceptLoss() -> [String] {
        let accepted = setAsideFiles.filter(JournalDirectory.accept)
        setAsideFiles.removeAll { accepted.contains($0) }
        for index in segments.indices where segments[index].fate == .setAside {
            segments[index].fate = .accepted
        }
        return accepted
    }

    private mutating func makeFile(capacity: Int) throws(StoreFailure) -> SegmentFile {
        try SegmentFile.make(takePath(), capacity: capacity, in: directory)
    }

    private mutating func takePath() -> String {
        defer { nextIndex += 1 }
        return directory.path(ofSegment: nextIndex)
    }
}

/// A file for the journal that is still to be made, which takes a while: it is filled and synced.
public struct SpareRequest: Sendable {
    let path: String
    let capacity: Int
    let directory: JournalDirectory

    /// Makes the file; callable from any thread.
    public func make() throws(StoreFailure) -> SegmentFile {
        try SegmentFile.make(path, capacity: capacity, in: directory)
    }
}
