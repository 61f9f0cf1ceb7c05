/// The size of a journal on the disk.
public struct JournalOptions: Hashable, Sendable {
    /// Size of a segment's file in bytes, rounded up to whole blocks of 4,096; at least 65,536.
    public var segmentBytes: Int
    /// Number of files that are kept. There may be more for a while, after a frame larger than a
    /// segment or while the disk fails.
    public var segmentCount: Int

    public init(segmentBytes: Int = 16 << 20, segmentCount: Int = 8) {
        precondition(segmentBytes >= 65_536, "journal segments of \(segmentBytes) bytes")
        precondition(segmentBytes <= SegmentFormat.maximumPayload, "\(segmentBytes) bytes")
        precondition(segmentCount >= 2, "journal of \(segmentCount) segments")
        self.segmentBytes = SegmentFormat.roundedUp(segmentBytes, to: SegmentFormat.blockSize)
        self.segmentCount = segmentCount
    }
}

/// The place of a frame's payload.
public struct AppendedFrame: Hashable, Sendable, BitwiseCopyable {
    public let segment: UInt64
    /// Bytes from the beginning of the segment's file.
    public let payloadOffset: UInt32
}

/// A log of frames in files that are used again and again. A frame is durable once ``sync()`` has
/// returned.
///
/// Used by one thread at a time. Its states:
///
/// ```
/// init ─ replayAndBegin ─> active ─ append, sync, … ─ isFull? beginSegment ─> active
///                            │ a write or a sync fails
///                            v
///                          failed ─ restart ─> active: the caller appends again what was not synced
/// ```
///
/// ``replay(_:)`` only reads; ``beginSegment(payloadBytes:)`` may also follow it.
///
/// Segments are kept until ``free(through:)``. ``SegmentFormat`` describes the bytes.
public struct Journal: ~Copyable, Sendable {
    let options: JournalOptions
    let directory: JournalDirectory
    /// The last segment that the database had at the start. Frames up to this segment are never
    /// read.
    let appliedSegment: UInt64
    /// Segments in use, by rising number. If `isActive`, the last one is written to.
    var segments: [Segment]
    private var freeFiles: [SegmentFile] = []
    /// Files without a readable header, until the replay reports them.
    var unidentified: [FoundFiles.Unidentified]
    /// The highest number that was found in a file; 0 for none.
    let highestFound: UInt64
    /// The highest number that was ever assigned.
    var highestNumber: UInt64
    /// The highest segment that the database has, as far as the journal was told.
    private var freedNumber: UInt64
    private var nextIndex: Int
    private var hasPendingSpare = false
    private var isActive = false
    var isReplayed = false
    /// Paths of damaged files that were set aside, by this process or an earlier one, and that
    /// still exist.
    public internal(set) var setAsideFiles: [String]
    /// The reason why the active segment is not written to any more, until
    /// ``restart(payloadBytes:)``; `nil` while it is.
    public private(set) var failure: StoreFailure?

    /// Opens the journal in a directory, which is created if it is missing. Reads only the headers
    /// of the files.
    ///
    /// - Parameters:
    ///   - path: the directory; only the caller's process may use it.
    ///   - options: the size of the journal. Files of another size are replaced when they are
    ///     freed.
    ///   - appliedSegment: the last segment that the database has; 0 for none.
    /// - Throws: `.newerFormat` if a newer version of this program wrote a file; a failure to list,
    ///   create or read.
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

    /// The segment that frames are appended to; `nil` before the first.
    public var activeSegment: UInt64? { isActive ? segments.last?.header.number : nil }

    /// Segments with frames that the database may not have, by rising number; the active one is the
    /// last.
    public var segmentNumbers: [UInt64] { segments.map(\.header.number) }

    /// Bytes of the segments in use, up to the end of each one's last frame.
    public var usedBytes: Int { segments.reduce(0) { $0 + $1.end } }

    /// Size of all files in bytes.
    public var diskBytes: Int {
        segments.reduce(0) { $0 + $1.file.capacity }
            + freeFiles.reduce(0) { $0 + $1.capacity }
    }

    /// Number of files that wait to be used.
    public var freeFileCount: Int { freeFiles.count }

    /// Bytes of the active segment, up to the end of its last frame.
    var activeBytes: Int { isActive ? segments.last?.end ?? 0 : 0 }

    /// Bytes of files that will have to be made when `waiting` bytes of records are written too: none
    /// while a file waits for that, and else as many as the active segment has taken already, and a
    /// small file, with which a start makes do.
    func missingBytes(beside waiting: Int) -> Int {
        let active = activeBytes
        let room = freeFiles.reduce(0) { $0 + $1.capacity }
        // The next start may have to write frames again that are longer than a segment.
        let restart = active > options.segmentBytes ? active : 0
        return max(0, active + waiting + smallCapacity - room) + restart
    }

    /// True if another segment can be begun without more files than the options allow.
    public var hasFreeSegment: Bool { !freeFiles.isEmpty || fileCount < options.segmentCount }

    /// True if a frame was appended after the last ``sync()``.
    public var hasUnsyncedFrames: Bool {
        guard isActive, let active = segments.last else { return false }
        return active.syncedEnd < active.end
    }

    /// True if a frame with a payload of this size needs another segment, or if there is no active
    /// one.
    public func isFull(for payloadBytes: Int) -> Bool {
        guard isActive, let active = segments.last else { return true }
        return SegmentFormat.end(ofFrameAt: active.nextOffset, payload: payloadBytes)
            > active.file.capacity
    }

    /// True if the next segment names this one as its predecessor, so that a replay would report it
    /// as missing.
    public func isNamedByNext(_ number: UInt64) -> Bool {
        segments.contains {
            $0.header.number == number && $0.syncedEnd > SegmentFormat.blockSize
        }
    }

    /// A reader for a segment in use, which any thread may use; `nil` when the segment is not in
    /// use.
    public func reader(of number: UInt64) -> SegmentReader? {
        segments.last { $0.header.number == number }
            .map { SegmentReader(number: number, file: $0.file) }
    }

    // MARK: Writing

    /// Writes one frame that consists of the pieces in order; ``sync()`` makes it durable.
    ///
    /// The frame must fit: ask ``isFull(for:)`` first.
    ///
    /// - Parameter pieces: together at least one byte.
    /// - Returns: the place of the payload.
    /// - Throws: a failure to write. The segment has failed then.
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
    /// - Throws: a failure to synchronise. The segment has failed then, and frames since the last
    ///   sync may or may not be on the disk.
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

    /// Begins the next segment, after synchronising the active one if needed.
    ///
    /// Takes a free file or creates one, even if there are more files than the options say. A
    /// payload larger than a segment gets a file of its own size, which is deleted when it is
    /// freed.
    ///
    /// - Parameter payloadBytes: the size of the payload that must fit.
    /// - Throws: a failure to create or write the file. The journal is then unchanged and can be
    ///   used, unless the sync set ``failure``.
    public mutating func beginSegment(payloadBytes: Int = 1) throws(StoreFailure) {
        precondition(isReplayed, "segment begun before the replay")
        try sync()
        let end = Self.end(ofFrames: CollectionOfOne(payloadBytes))
        try begin(in: takeFile(capacity: capacity(upTo: end), upTo: end))
    }

    /// Takes a free file or creates one. On a disk without room for a whole segment, a smaller file
    /// does as well, as long as the frames up to offset `end` fit.
    mutating func takeFile(capacity: Int, upTo end: Int) throws(StoreFailure) -> SegmentFile {
        if capacity == options.segmentBytes, let file = freeFiles.popLast() { return file }
        do throws(StoreFailure) {
            return try makeFile(capacity: capacity)
        } catch {
            let least = max(
                smallCapacity, SegmentFormat.roundedUp(end, to: SegmentFormat.blockSize))
            guard error.kind == .outOfSpace, least < capacity,
                let file = try? makeFile(capacity: least)
            else { throw error }
            return file
        }
    }

    /// Size of the file of a segment on a disk that is full.
    private var smallCapacity: Int {
        max(
            SegmentFormat.roundedUp(options.segmentBytes / 16, to: SegmentFormat.blockSize),
            4 * SegmentFormat.blockSize)
    }

    /// Size of a file for a segment whose frames end at offset `end`.
    func capacity(upTo end: Int) -> Int {
        max(SegmentFormat.roundedUp(end, to: SegmentFormat.blockSize), options.segmentBytes)
    }

    /// The end of frames with these payloads that follow each other without a sync between them.
    static func end(ofFrames payloads: some Sequence<Int>) -> Int {
        payloads.reduce(SegmentFormat.blockSize) { SegmentFormat.end(ofFrameAt: $0, payload: $1) }
    }

    /// Continues in a new file after a failed write or sync. The failed file is never written
    /// again.
    ///
    /// The caller appends again everything since the last sync: those frames of the failed segment
    /// no longer count. Synchronised frames there stay readable.
    ///
    /// - Parameter payloadBytes: the size of the payload that must fit.
    /// - Throws: a failure to create or write the file; the journal is then unchanged.
    public mutating func restart(payloadBytes: Int = 1) throws(StoreFailure) {
        precondition(failure != nil, "restart of a journal that has not failed")
        let capacity = capacity(upTo: Self.end(ofFrames: CollectionOfOne(payloadBytes)))
        let file: SegmentFile
        do throws(StoreFailure) {
            file = try makeFile(capacity: capacity)
        } catch {
            // On a full disk, a free file that has its space and never failed serves as well.
            guard capacity == options.segmentBytes, let free = freeFiles.popLast() else {
                throw error
            }
            file = free
        }
        try begin(in: file)
    }

    /// Begins a segment in this file, which is deleted if that fails. `fill` writes the segment's
    /// first frames, before the header makes it count.
    mutating func begin(
        in file: SegmentFile, fill: (inout Segment) throws(StoreFailure) -> Void = { _ in }
    ) throws(StoreFailure) {
        // The number counts as used even if the header cannot be written, since the file may
        // contain it.
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

    /// The number and end of the predecessor, as the next segment's header names them.
    private var previousLink: (number: UInt64, end: UInt64) {
        guard let last = segments.last else { return (freedNumber, 0) }
        // Frames behind the last sync of a failed segment were never acknowledged, and are written
        // again to the next one.
        if last.syncedEnd > SegmentFormat.blockSize {
            return (last.header.number, UInt64(last.syncedEnd))
        }
        // A segment without a synchronised frame may not be on the disk, so no replay may miss it.
        return (last.header.previousNumber, last.header.previousEnd)
    }

    // MARK: Recycling

    /// Frees all segments up to this number, because the database has them. The active one must not
    /// be among them, and no reader may use them any more.
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

    /// A request for a file to be created ahead of time on another thread; `nil` if none is needed.
    ///
    /// Every request must end with ``finishSpare(_:)``.
    public mutating func spareRequest() -> SpareRequest? {
        guard freeFiles.isEmpty, !hasPendingSpare, fileCount < options.segmentCount else {
            return nil
        }
        hasPendingSpare = true
        return SpareRequest(
            path: takePath(), capacity: options.segmentBytes, directory: directory)
    }

    /// Takes the file that a request has created; `nil` if that failed.
    public mutating func finishSpare(_ file: SegmentFile?) {
        precondition(hasPendingSpare, "spare segment that nobody asked for")
        hasPendingSpare = false
        if let file { freeFiles.append(file) }
    }

    /// Deletes free files beyond so many, so that others may have their space.
    mutating func keepFreeFiles(atMost count: Int) {
        while freeFiles.count > count, let file = freeFiles.popLast() {
            SegmentFile.remove(file.path)
        }
    }

    private var fileCount: Int { segments.count + freeFiles.count + (hasPendingSpare ? 1 : 0) }

    /// Keeps a file for further use, or deletes it.
    mutating func recycle(_ file: SegmentFile) {
        if file.capacity == options.segmentBytes && fileCount < options.segmentCount {
            freeFiles.append(file)
        } else {
            SegmentFile.remove(file.path)
        }
    }

    /// Renames a damaged file for the operator and returns its path. If it cannot be renamed it
    /// stays where it is, and the next start tries again.
    @discardableResult
    mutating func setAside(_ file: SegmentFile) -> String {
        guard let path = try? directory.setAside(file.path) else { return file.path }
        setAsideFiles.append(path)
        return path
    }

    /// The operator accepts the loss: damaged files are renamed and forgotten. A file that is still
    /// in use follows when it is freed.
    ///
    /// - Returns: the paths that the files had. A file that could not be renamed still counts as
    ///   damage.
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

/// A journal file to be created. That takes a while, since the file is filled and synchronised.
public struct SpareRequest: Sendable {
    let path: String
    let capacity: Int
    let directory: JournalDirectory

    /// Creates the file; may be called from any thread.
    public func make() throws(StoreFailure) -> SegmentFile {
        try SegmentFile.make(path, capacity: capacity, in: directory)
    }
}
