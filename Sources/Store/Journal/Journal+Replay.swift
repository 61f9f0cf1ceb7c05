extension Journal {
    /// Receives a frame: the number of its segment, the offset of its payload in the segment's
    /// file, and the payload, which is valid only during the call.
    public typealias Body = (UInt64, UInt32, UnsafeRawBufferPointer) throws(StoreFailure) -> Void

    /// Passes on the frames that the database may not have, in the order in which they were
    /// appended. Must be called once, before the first segment is begun. Writes nothing.
    ///
    /// Missing and damaged frames are skipped and reported. A file with damage is set aside when
    /// its segment is freed; a file that cannot be identified is set aside at once.
    ///
    /// The last frames may be in the page cache and not on the disk. ``replayAndBegin(_:)`` takes
    /// care of that; after this call, the caller must bring them into the database before anything
    /// else.
    ///
    /// - Returns: the frames and the damage that were found.
    /// - Throws: an error of the body, or a failure to read. A file that cannot be read may be
    ///   moved away; its segment is then reported as missing.
    public mutating func replay(_ body: Body) throws(StoreFailure) -> ReplayReport {
        var nothing: UnprovenFrames?
        return try replay(holding: &nothing, body)
    }

    /// Replays, and begins the first segment. All frames that were passed on are durable then.
    ///
    /// The last frames of the newest segment may have been written without a sync, or their sync
    /// may have failed, which a later sync would not show. They are written again to the new
    /// segment and passed on from there. Until the new segment is durable, the old frames count.
    ///
    /// - Returns: the same as ``replay(_:)``.
    /// - Throws: also a failure to write; the next replay then finds everything again.
    public mutating func replayAndBegin(_ body: Body) throws(StoreFailure) -> ReplayReport {
        var unproven: UnprovenFrames? = UnprovenFrames()
        let report = try replay(holding: &unproven, body)
        guard let frames = unproven?.frames, !frames.isEmpty else {
            try beginSegment()
            dropEmptySegments()
            return report
        }
        let end = Self.end(ofFrames: frames.lazy.map(\.payload.count))
        var offsets: [UInt32] = []
        try begin(in: takeFile(capacity: capacity(upTo: end), upTo: end)) {
            (segment) throws(StoreFailure) in
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
        // From here on the new frames count, even if the machine crashes.
        try segments[last].file.synchronize()
        for (frame, offset) in zip(frames, offsets) {
            try frame.handOver(segments[last].header.number, offset, body)
        }
        dropEmptySegments()
        return report
    }

    /// Recycles segments without a frame, which no later segment names.
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

    /// Finds gaps between segments, and drops segments that their successors do not name.
    ///
    /// - Returns: for each segment, the end of its frames according to its successor.
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
                // This segment failed before one of its frames was synchronised, and another was
                // begun instead.
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
            // The last applied segment's file keeps its number until the file is used again.
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
                // Frames behind the last sync reach the disk in any order and were never
                // acknowledged: that is a torn tail. All other frames were once complete.
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
