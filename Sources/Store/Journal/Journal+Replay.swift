extension Journal {
    /// Gets a frame: the number of its segment, where the payload begins in that one's file, and the
    /// payload, which is valid within the call.
    public typealias Body = (UInt64, UInt32, UnsafeRawBufferPointer) throws(StoreFailure) -> Void

    /// Hands over the frames that the database may not have, in the order in which they were
    /// appended; once, before the first segment is begun. Nothing is written.
    ///
    /// What is missing or damaged is skipped and reported. Its files are set aside when their
    /// segments are freed, those that nothing is known of at once.
    ///
    /// What was written last may be in the page cache and not on the disk: unless
    /// ``replayAndBegin(_:)`` takes care of that, the database must have it before anything goes on.
    ///
    /// - Returns: what was handed over, and what could not be.
    /// - Throws: what the body throws, and a failure to read. A file that cannot be read can be
    ///   moved away: then its segment is reported as missing.
    public mutating func replay(_ body: Body) throws(StoreFailure) -> ReplayReport {
        var nothing: UnprovenFrames?
        return try replay(holding: &nothing, body)
    }

    /// Replays, and begins the first segment: all that is handed over is on the disk then.
    ///
    /// The last frames of the newest segment may have been written and not synced, or their sync may
    /// have failed, which a later one would not show. They are written again, to the segment that is
    /// begun, and handed over from there; until that is on the disk, the old ones count.
    ///
    /// - Returns: as ``replay(_:)``.
    /// - Throws: also what writing met; the next replay finds everything that this one did.
    public mutating func replayAndBegin(_ body: Body) throws(StoreFailure) -> ReplayReport {
        var unproven: UnprovenFrames? = UnprovenFrames()
        let report = try replay(holding: &unproven, body)
        guard let frames = unproven?.frames, !frames.isEmpty else {
            try beginSegment()
            dropEmptySegments()
            return report
        }
        let capacity = capacity(upTo: Self.end(ofFrames: frames.lazy.map(\.payload.count)))
        var offsets: [UInt32] = []
        try begin(in: takeFile(capacity: capacity)) { (segment) throws(StoreFailure) in
            for frame in frames {
                let failure = frame.payload.withUnsafeBytes {
                    segment.write([$0], payloadCount: $0.count)
                }
                if let failure { throw failure }
                offsets.append(segment.lastFrame.payloadOffset)
            }
            try segment.file.synchronize()
            segment.syncedEnd = segment.end
        }
        let last = segments.count - 1
        // From here on the old ones count no more, whatever happens to the machine.
        try segments[last].file.synchronize()
        for (frame, offset) in zip(frames, offsets) {
            try frame.handOver(segments[last].header.number, offset, body)
        }
        dropEmptySegments()
        return report
    }

    /// Segments that no frame is left in, and that none names.
    private mutating func dropEmptySegments() {
        guard let active = segments.popLast() else { return }
        let dropped = segments.filter { $0.fate == .recycled && $0.end == SegmentFormat.blockSize }
        segments.removeAll { $0.fate == .recycled && $0.end == SegmentFormat.blockSize }
        segments.append(active)
        for segment in dropped { recycle(segment.file) }
    }

    private mutating func replay(
        holding unproven: inout UnprovenFrames?, _ body: Body
    ) throws(StoreFailure) -> ReplayReport {
        precondition(!isReplayed, "second replay of a journal")
        var report = ReplayReport()
        for found in unidentified {
            report.note(
                JournalDamage(
                    kind: found.reason, path: setAside(found.file), segments: nil, offset: 0,
                    byteCount: 0))
        }
        unidentified = []
        let ends = keepSequence(&report)
        for index in segments.indices {
            var tail = index == segments.count - 1 ? unproven : nil
            try replaySegment(at: index, knownEnd: ends[index], holding: &tail, &report, body)
            if tail != nil { unproven = tail }
        }
        isReplayed = true
        return report
    }

    /// Finds gaps, and drops what its successors leave out.
    ///
    /// - Returns: where each segment's frames end, according to its successor.
    private mutating func keepSequence(_ report: inout ReplayReport) -> [Int?] {
        var ends: [Int?] = []
        var kept: [Segment] = []
        for segment in segments.reversed() {
            let number = segment.header.number
            guard let successor = kept.last?.header else {
                kept.append(segment)
                ends.append(nil)
                continue
            }
            if number > successor.previousNumber {
                // It was begun, failed before a frame of it was synced, and was followed by another.
                recycle(segment.file)
                continue
            }
            if number < successor.previousNumber {
                noteMissing(number + 1...successor.previousNumber, &report)
            }
            let isKnown = number == successor.previousNumber && successor.previousEnd > 0
            kept.append(segment)
            ends.append(isKnown ? Int(clamping: successor.previousEnd) : nil)
        }
        if let first = kept.last?.header {
            if first.previousNumber > appliedSegment {
                noteMissing(appliedSegment + 1...first.previousNumber, &report)
            }
        } else if highestFound < appliedSegment {
            // The file of the last applied segment keeps its number until another one takes it.
            noteMissing(appliedSegment...appliedSegment, &report)
        }
        segments = kept.reversed()
        return ends.reversed()
    }

    private func noteMissing(_ numbers: ClosedRange<UInt64>, _ report: inout ReplayReport) {
        report.note(
            JournalDamage(
                kind: .missingSegments, path: directory.path, segments: numbers, offset: 0,
                byteCount: 0))
    }

    private mutating func replaySegment(
        at index: Int, knownEnd: Int?, holding unproven: inout UnprovenFrames?,
        _ report: inout ReplayReport, _ body: Body
    ) throws(StoreFailure) {
        let number = segments[index].header.number
        let path = segments[index].file.path
        var scanner = SegmentScanner(segments[index], end: knownEnd)
        var position = SegmentFormat.blockSize
        var isDamaged = false

        func damage(_ kind: JournalDamage.Kind, upTo end: Int) -> JournalDamage {
            isDamaged = true
            return JournalDamage(
                kind: kind, path: path, segments: number...number, offset: position,
                byteCount: end - position)
        }

        scanning: while position < knownEnd ?? Int.max {
            var next = try scanner.frame(following: position)
            if next == nil, let later = try scanner.firstFrame(from: position) {
                // Frames behind the last sync reach the disk in any order, and none of them was
                // acknowledged: that is a torn tail. All others were whole once.
                guard knownEnd != nil || Int(later.header.syncedEnd) > position else {
                    report.tornTail = TornTail(
                        path: path, segment: number, offset: position,
                        byteCount: later.end - position)
                    break scanning
                }
                report.note(damage(.unreadableFrames, upTo: later.offset))
                next = later
            }
            guard let frame = next else {
                if let knownEnd {
                    report.note(damage(.shortSegment, upTo: knownEnd))
                    position = knownEnd
                } else {
                    let torn = try scanner.tornBytes(following: position)
                    if torn > 0 {
                        report.tornTail = TornTail(
                            path: path, segment: number, offset: position, byteCount: torn)
                    }
                }
                break scanning
            }
            if unproven == nil {
                try body(number, UInt32(frame.payloadOffset), frame.payload)
            } else {
                for proven in unproven?.takeProven(below: frame.header.syncedEnd) ?? [] {
                    try proven.handOver(number, proven.payloadOffset, body)
                }
                unproven?.append(frame)
            }
            report.frameCount += 1
            report.byteCount += frame.payload.count
            position = frame.end
        }
        report.segments.append(number)
        segments[index].finishReplay(
            end: unproven?.begin ?? position, isDamaged: isDamaged)
    }
}
