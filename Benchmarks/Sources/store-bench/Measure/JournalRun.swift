import Store

/// Stores and acknowledges messages in a journal, group by group, and keeps none.
struct JournalRun: ~Copyable {
    private var journal: Journal
    private var batch = WriteBatch(isRecording: true)
    private let group: Int
    private let syncs: Bool
    private let topic = [UInt8]("orders/10000001/status".utf8)
    private let payload: [UInt8]
    private var lastMessage: UInt64 = 0
    private var commits = LatencyHistogram()

    init(
        directory: String, group: Int, payload: Int, segmentBytes: Int, syncs: Bool
    ) throws(StoreFailure) {
        var journal = try Journal(
            directory: directory + "/journal",
            options: JournalOptions(segmentBytes: segmentBytes, segmentCount: 4),
            appliedSegment: 0)
        // Nothing is there to be replayed.
        _ = try journal.replay { _, _, _ in }
        self.journal = journal
        self.group = group
        self.syncs = syncs
        self.payload = (0..<payload).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    }

    /// One row of figures, without the first groups, which make the files.
    mutating func measure(seconds: Double) throws(StoreFailure) -> [Double?] {
        // Through all files twice, so that none is made while the clock runs.
        try fillSegments(8)
        commits.removeAll()
        var bytes = 0
        var groups = 0
        let cpuStart = CPUTime.now()
        let start = Clock.nanoseconds()
        let end = start + UInt64(seconds * 1e9)
        var now = start
        while now < end {
            bytes += try commitGroup()
            groups += 1
            now = Clock.nanoseconds()
        }
        let cpu = CPUTime.now() - cpuStart
        let messages = Double(groups * group)
        let wall = Double(now - start)
        return [
            Double(group), messages, messages / wall * 1e9, Double(cpu.total) / messages / 1e3,
            Double(cpu.user) / messages / 1e3, wall / messages / 1e3, Double(bytes) / messages,
            microseconds(0.5), microseconds(0.99), Double(commits.maximum) / 1e3,
        ]
    }

    private func microseconds(_ quantile: Double) -> Double? {
        commits.value(atQuantile: quantile).map { Double($0) / 1e3 }
    }

    /// Large frames of no meaning, until that many segments were begun.
    private mutating func fillSegments(_ count: Int) throws(StoreFailure) {
        let filler = [UInt8](repeating: 1, count: 32_768)
        for _ in 0..<count {
            try beginSegment(payloadBytes: filler.count)
            while !journal.isFull(for: filler.count) {
                try append(filler)
            }
        }
    }

    /// Stores a group, acknowledges the one before, and returns the bytes of the records.
    private mutating func commitGroup() throws(StoreFailure) -> Int {
        let previous = lastMessage
        topic.withUnsafeBytes { topic in
            payload.withUnsafeBytes { payload in
                for _ in 0..<group {
                    lastMessage += 1
                    batch.message(
                        lastMessage, topic: topic, payload: payload, qos: 1, retain: false,
                        expiresAtMs: 0)
                    batch.queued(
                        session: 1, position: lastMessage, message: lastMessage, qos: 1,
                        retain: false, isInWindow: true)
                    _ = batch.commit()
                }
            }
        }
        if previous > 0 {
            for position in previous - UInt64(group) + 1...previous {
                batch.finished(session: 1, position: position)
                _ = batch.commit()
            }
        }
        let started = Clock.nanoseconds()
        let count = batch.withBytes { $0.count }
        if journal.isFull(for: count) { try beginSegment(payloadBytes: count) }
        let result = batch.withBytes { bytes in
            Result { () throws(StoreFailure) in try journal.append([bytes]) }
        }
        batch.clear()
        _ = try result.get()
        if syncs { try journal.sync() }
        commits.record(Clock.nanoseconds() - started)
        return count
    }

    private mutating func append(_ bytes: [UInt8]) throws(StoreFailure) {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(StoreFailure) in try journal.append([bytes]) }
        }
        _ = try result.get()
    }

    /// Goes on in the next segment, and gives back the one before, whose messages are all done.
    private mutating func beginSegment(payloadBytes: Int) throws(StoreFailure) {
        let full = journal.activeSegment
        try journal.beginSegment(payloadBytes: payloadBytes)
        if let full { journal.free(through: full) }
    }
}
