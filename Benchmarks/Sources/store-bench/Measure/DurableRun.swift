import Glibc
import Store

/// A durable store under one submitting thread, as a broker's shard would use it.
final class DurableRun {
    /// The cost of one part of the measurement.
    private struct Part {
        var cpu = CPUTime.now()
        var begin = Clock.nanoseconds()

        func perMessage(_ messages: Double) -> (cpu: Double, user: Double, wall: Double) {
            let spent = CPUTime.now() - cpu
            return (
                Double(spent.total) / messages / 1e3, Double(spent.user) / messages / 1e3,
                Double(Clock.nanoseconds() - begin) / messages / 1e3
            )
        }
    }

    private let directory: String
    private let options: DurableStoreOptions
    private let wakeup: DurableWakeup
    private var store: DurableStore
    private let group: Int
    private let topic = [UInt8]("orders/10000001/status".utf8)
    private let payload: [UInt8]
    private var batch = WriteBatch(isRecording: true)
    private var lastMessage: UInt64 = 0
    /// The next position of each session; sessions count from 1.
    private var ends: [UInt64]
    private var commits = LatencyHistogram()
    private var completions: [ClosedRange<UInt64>] = []
    private var slices: [QueueSlice] = []

    init(
        directory: String, options: DurableStoreOptions, group: Int, payload: Int, sessions: Int
    ) throws {
        let wakeup = try DurableWakeup()
        self.directory = directory
        self.options = options
        self.wakeup = wakeup
        store = try Self.open(directory, options, wakeup)
        self.group = group
        self.payload = (0..<payload).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        ends = [UInt64](repeating: 1, count: sessions)
        try addSessions()
    }

    private static func open(
        _ directory: String, _ options: DurableStoreOptions, _ wakeup: DurableWakeup
    ) throws -> DurableStore {
        let store = try DurableStore(directory: directory, options: options) { wakeup.signal() }
        try store.start()
        return store
    }

    /// Brings everything into the database and ends the store.
    func close() throws {
        guard store.close(waitMilliseconds: 120_000) else {
            throw BenchFailure("the store did not close: \(String(describing: store.figures))")
        }
    }

    /// One row of figures.
    func measure(seconds: Double, delay: Int, messages: Int) throws -> [Double?] {
        // So that no file is made while the clock runs.
        _ = try runInJournal(seconds: seconds / 3, delay: delay)
        commits.removeAll()
        let part = Part()
        let journalMessages = try runInJournal(seconds: seconds, delay: delay)
        let journal = part.perMessage(journalMessages)
        var row: [Double?] = [
            Double(group), 1e6 / journal.wall, journal.cpu, journal.user, microseconds(0.5),
            microseconds(0.99), Double(commits.maximum) / 1e6,
        ]
        guard messages > 0 else {
            try close()
            return row + [Double?](repeating: nil, count: 9)
        }
        try close()
        store = try Self.open(directory, options, wakeup)
        let first = ends
        let fill = try measureToTheEnd(messages) { run in
            for _ in 0..<max(1, messages / run.group) {
                // As a broker does, which pauses publishers meanwhile.
                while !run.store.isAccepting { run.wakeup.wait() }
                try run.commit { $0.putGroup() }
            }
        }
        store = try Self.open(directory, options, wakeup)
        let drain = try measureToTheEnd(messages) { try $0.drain(from: first) }
        row += fill + drain
        if let fillCPU = fill[0], let drainCPU = drain[0] { row.append(fillCPU + drainCPU) }
        return row
    }

    /// CPU and time per message until all are in the database, and the slowest commits.
    private func measureToTheEnd(
        _ messages: Int, _ body: (DurableRun) throws -> Void
    ) throws -> [Double?] {
        commits.removeAll()
        let part = Part()
        try body(self)
        try close()
        let spent = part.perMessage(Double(max(1, messages / group) * group))
        return [spent.cpu, spent.wall, microseconds(0.99), Double(commits.maximum) / 1e6]
    }

    private func microseconds(_ quantile: Double) -> Double? {
        commits.value(atQuantile: quantile).map { Double($0) / 1e3 }
    }

    // MARK: Parts

    private func addSessions() throws {
        for session in 1...UInt64(ends.count) {
            Array("phone-\(session)".utf8).withUnsafeBytes {
                batch.session(session, clientID: $0, userName: nil)
            }
        }
        try commit { _ = $0.batch.commit() }
    }

    /// Stores groups and acknowledges them `delay` groups later; returns the messages stored.
    private func runInJournal(seconds: Double, delay: Int) throws -> Double {
        var groups: [[(session: UInt64, position: UInt64)]] = []
        var messages = 0.0
        let end = Clock.nanoseconds() + UInt64(seconds * 1e9)
        while Clock.nanoseconds() < end {
            let done = groups.count == delay ? groups.removeFirst() : []
            try commit { run in
                for (session, position) in done {
                    run.batch.finished(session: session, position: position)
                    _ = run.batch.commit()
                }
                groups.append(run.putGroup())
            }
            messages += Double(group)
        }
        try commit { run in
            for (session, position) in groups.joined() {
                run.batch.finished(session: session, position: position)
            }
            _ = run.batch.commit()
        }
        return messages
    }

    /// Reads all queues, windows of a few sessions at a time, and acknowledges the messages.
    private func drain(from first: [UInt64]) throws {
        var next = first
        var session = 0
        while session < ends.count {
            let end = min(session + 16, ends.count)
            var isDone = true
            for index in session..<end where next[index] < ends[index] {
                isDone = false
                store.read(
                    QueueRead(
                        session: UInt64(index + 1), from: next[index], below: ends[index],
                        maxMessages: 100, maxBytes: 65_536, tag: UInt64(index), ticket: 0))
            }
            if isDone {
                session = end
                continue
            }
            let waiting = (session..<end).filter { next[$0] < ends[$0] }.count
            slices.removeAll(keepingCapacity: true)
            while slices.count < waiting {
                wakeup.wait()
                store.takeSlices(&slices)
            }
            var positions: [(UInt64, UInt64)] = []
            for slice in slices {
                if let failure = slice.failure { throw failure }
                next[Int(slice.request.tag)] = slice.next
                slice.forEach { positions.append((slice.request.session, $0.position)) }
            }
            try commit { run in
                for (session, position) in positions {
                    run.batch.finished(session: session, position: position)
                    _ = run.batch.commit()
                }
            }
        }
        guard next == ends else { throw BenchFailure("what went in did not come out") }
    }

    // MARK: Groups

    @discardableResult
    private func putGroup() -> [(session: UInt64, position: UInt64)] {
        var positions: [(session: UInt64, position: UInt64)] = []
        positions.reserveCapacity(group)
        topic.withUnsafeBytes { topic in
            payload.withUnsafeBytes { payload in
                for _ in 0..<group {
                    lastMessage += 1
                    let index = Int(lastMessage % UInt64(ends.count))
                    batch.message(
                        lastMessage, topic: topic, payload: payload, qos: 1, retain: false,
                        expiresAtMs: 0)
                    batch.queued(
                        session: UInt64(index + 1), position: ends[index], message: lastMessage,
                        qos: 1, retain: false, isInWindow: true)
                    _ = batch.commit()
                    positions.append((UInt64(index + 1), ends[index]))
                    ends[index] += 1
                }
            }
        }
        return positions
    }

    /// Fills the batch, submits it and waits until its last ticket is complete.
    private func commit(_ fill: (DurableRun) throws -> Void) throws {
        try fill(self)
        let ticket = batch.lastTicket
        let begin = Clock.nanoseconds()
        store.submit(&batch)
        while true {
            completions.removeAll(keepingCapacity: true)
            store.takeCompletions(&completions)
            if completions.last?.upperBound == ticket { break }
            wakeup.wait()
            if let failure = store.figures.failure { throw failure }
        }
        commits.record(Clock.nanoseconds() - begin)
    }
}
