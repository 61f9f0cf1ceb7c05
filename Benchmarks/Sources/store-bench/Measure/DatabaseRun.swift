import Store

/// The stay of messages in the database: in, read, out, and the space back.
final class DatabaseRun {
    private let directory: String
    private let database: Database
    private let sessions: Int
    private let messages: Int
    private let segmentMessages: Int
    private let receivers: Int
    private let payload: [UInt8]
    private var segment: UInt64 = 0
    private var ends: [UInt64]
    private var longestApply: UInt64 = 0
    private var longestCheckpoint: UInt64 = 0
    private var logBytes = 0

    init(
        directory: String, sessions: Int, messages: Int, segmentMessages: Int, receivers: Int,
        payload: Int
    ) throws(StoreFailure) {
        self.directory = directory
        database = try Database(directory: directory)
        self.sessions = sessions
        self.messages = messages
        self.segmentMessages = segmentMessages
        self.receivers = receivers
        self.payload = (0..<payload).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        ends = [UInt64](repeating: 1, count: sessions)
    }

    /// One row of figures.
    func measure() throws -> [Double?] {
        try makeSessions()
        let (fill, fillWall) = try fill()
        let full = try database.sizes()
        let fillLogBytes = logBytes
        let (read, found) = try readAll()
        guard found == messages * receivers else {
            throw BenchFailure("\(messages * receivers) queue rows went in, \(found) came out")
        }
        let drain = try drain()
        let reclaim = try reclaim()
        let after = try database.sizes()
        let rows = Double(messages * receivers)
        func perMessage(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / rows / 1e3 }
        return [
            Double(sessions), perMessage(fill), perMessage(fillWall),
            Double(longestApply) / 1e6, Double(longestCheckpoint) / 1e6, perMessage(read),
            perMessage(drain), perMessage(reclaim), perMessage(fill + read + drain + reclaim),
            Double(full.file) / rows, Double(fillLogBytes) / rows, Double(after.file),
        ]
    }

    private func next() -> DatabaseSegment {
        segment += 1
        return DatabaseSegment(segment)
    }

    private func makeSessions() throws {
        var segment = next()
        for session in 1...UInt64(sessions) { segment.session(session, end: .max >> 1) }
        try segment.apply(to: database)
        try database.checkpoint()
    }

    /// CPU and wall nanoseconds of moving all messages in.
    private func fill() throws -> (cpu: UInt64, wall: UInt64) {
        var cpu: UInt64 = 0
        var wall: UInt64 = 0
        var number: UInt64 = 0
        while number < messages {
            var segment = next()
            for _ in 0..<min(segmentMessages, messages - Int(number)) {
                number += 1
                segment.message(
                    number, topic: Array("orders/s-\(number % 10_000)/o-\(number)/status".utf8),
                    payload: payload)
                for receiver in 0..<receivers {
                    let session = (Int(number) + receiver * 7) % sessions
                    segment.queued(UInt64(session + 1), ends[session], message: number)
                    ends[session] += 1
                }
            }
            segment.sort()
            let (segmentCPU, segmentWall) = try move(segment)
            cpu += segmentCPU
            wall += segmentWall
        }
        return (cpu, wall)
    }

    /// CPU and wall nanoseconds of one segment with its checkpoint.
    private func move(_ segment: DatabaseSegment) throws -> (cpu: UInt64, wall: UInt64) {
        let cpu = CPUTime.now()
        let start = Clock.nanoseconds()
        try segment.apply(to: database)
        let applied = Clock.nanoseconds()
        logBytes += try database.checkpoint().logBytes
        let end = Clock.nanoseconds()
        longestApply = max(longestApply, applied - start)
        longestCheckpoint = max(longestCheckpoint, end - applied)
        return ((CPUTime.now() - cpu).total, end - start)
    }

    /// Reads every queue in windows of 200.
    private func readAll() throws -> (cpu: UInt64, rows: Int) {
        let reader = try QueueReader(directory: directory)
        var batch = WriteBatch(isRecording: true)
        var rows = 0
        let cpu = CPUTime.now()
        for session in 1...UInt64(sessions) {
            var from: UInt64 = 1
            var hasMore = true
            while hasMore {
                let window = try reader.read(
                    session: session, from: from, below: .max, maxMessages: 200,
                    maxBytes: 1 << 20, into: &batch)
                batch.clear()
                rows += window.messages
                from = window.next
                hasMore = window.hasMore
            }
        }
        return ((CPUTime.now() - cpu).total, rows)
    }

    /// Sessions come back in an order of their own, and each acknowledges all that it has.
    private func drain() throws -> UInt64 {
        var generator = SystemRandomNumberGenerator()
        let order = (0..<sessions).shuffled(using: &generator)
        let parts = max(1, messages / segmentMessages)
        var cpu: UInt64 = 0
        for part in 0..<parts {
            let range = sessions * part / parts..<sessions * (part + 1) / parts
            var segment = next()
            for session in order[range].sorted() {
                segment.finished(UInt64(session + 1), through: ends[session])
            }
            cpu += try move(segment).cpu
        }
        return cpu
    }

    private func reclaim() throws -> UInt64 {
        let cpu = CPUTime.now()
        while try database.reclaim() {}
        return (CPUTime.now() - cpu).total
    }
}
