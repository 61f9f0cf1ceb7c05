import Glibc
import HermesTesting
import Synchronization
import Testing
import Threads

@testable import Store

/// The store with its own threads and one submitting thread.
@Suite("Durable store with its threads", .serialized)
struct DurableThreadTests {
    @Test("tickets complete once, in order; reads see earlier submissions", arguments: 1...3)
    func concurrency(seed: UInt64) throws {
        let folder = DurableFolder()
        let client = try StoreClient(
            at: folder.path,
            options: .small(seed == 2 ? .interval(milliseconds: 1) : .sync), seed: seed)
        for _ in 1...250 {
            client.submit(groups: client.program.random.number(in: 1...6))
            if client.program.random.once(in: 2) { client.read() }
            if client.program.random.once(in: 3) { try client.takeAll(atLeast: 0) }
            if client.program.random.once(in: 20) { try client.waitForAll() }
        }
        try client.waitForAll()
        #expect(client.completed == Array(1...client.batch.lastTicket))
        #expect(client.store.close(waitMilliseconds: 30_000))

        let opened = try SteppedStore(at: folder.path)
        #expect(opened.store.recovery.report.frameCount == 0)
        let model = try opened.restoredModel()
        #expect(model?.comparable == client.program.model.comparable)
    }

    @Test("close stores the last submissions and leaves one complete database")
    func close() throws {
        let folder = DurableFolder()
        let client = try StoreClient(at: folder.path, options: .small(), seed: 7)
        for _ in 1...100 { client.submit(groups: 8) }
        #expect(client.store.close(waitMilliseconds: 30_000))
        #expect(access("\(folder.path)/hermes.sqlite-wal", F_OK) != 0)
        let opened = try SteppedStore(at: folder.path)
        let recovery = opened.store.recovery
        #expect(recovery.report.frameCount == 0 && recovery.waitingMessages == 0)
        #expect(try opened.restoredModel()?.comparable == client.program.model.comparable)
        #expect(opened.close())
    }

    @Test("close returns in time when the store hangs")
    func closeWhileHanging() throws {
        let folder = DurableFolder()
        let gate = try WorkQueue<Int>(name: "gate")
        let store = try DurableStore(directory: folder.path, options: .small()) {
            // Holds up the committer, like a disk that hangs.
            _ = gate.takeAll(waitMilliseconds: 10_000)
        }
        try store.start()
        var batch = WriteBatch(isRecording: true)
        batch.sessionRemoved(1)
        _ = batch.commit()
        store.submit(&batch)
        #expect(!store.close(waitMilliseconds: 100))
        gate.close()
        #expect(store.close(waitMilliseconds: 10_000))
        store.backup(to: folder.path) { #expect($0?.reason == "the broker stops") }
        store.acceptLoss { #expect($0.isEmpty) }
    }

    @Test("a store that is let go ends its threads")
    func deinitialisation() throws {
        let folder = DurableFolder()
        do { _ = try StoreClient(at: folder.path, options: .small(), seed: 1) }
        // Then the database can be opened without the log.
        for _ in 0..<500 where access("\(folder.path)/hermes.sqlite-wal", F_OK) == 0 {
            usleep(10_000)
        }
        #expect(access("\(folder.path)/hermes.sqlite-wal", F_OK) != 0)
    }

    @Test("a backup is a complete store at one moment, and delays no commit")
    func backup() throws {
        let folder = DurableFolder()
        let client = try StoreClient(at: folder.path, options: .small(segmentCount: 8), seed: 5)
        client.program.largestPayload = 4_000
        for _ in 1...150 { client.submit(groups: 6) }
        try client.waitForAll()
        let before = client.program.groupCount

        let copy = DurableFolder()
        let reply = try WorkQueue<StoreFailure?>(name: "reply")
        let bans = BackupFile(name: "bans", contents: Array("nobody\n".utf8))
        client.store.backup(to: "\(copy.path)", with: [bans]) { reply.post($0) }
        let moved = client.store.figures.movedSegments
        var answer: [StoreFailure?] = []
        var writes = 0
        while answer.isEmpty, writes < 3_000 {
            client.submit(groups: 6)
            try client.waitForAll()
            writes += 1
            answer = reply.takeAll(waitMilliseconds: 0) ?? []
        }
        if answer.isEmpty { answer = reply.takeAll(waitMilliseconds: 10_000) ?? [] }
        #expect(answer == [nil])
        #expect(writes < 100 || client.store.figures.movedSegments > moved)

        var status = stat()
        #expect(stat("\(copy.path)/bans", &status) == 0)
        #expect(status.st_size == bans.contents.count && status.st_mode & 0o777 == 0o600)
        let opened = try SteppedStore(at: copy.path)
        let model = try #require(try opened.restoredModel())
        let groups = model.groupCount
        #expect(groups >= before)
        #expect(model.comparable == client.program.model(after: groups)?.comparable)

        // The folder already holds a database.
        client.store.backup(to: "\(copy.path)") { reply.post($0) }
        #expect(
            reply.takeAll(waitMilliseconds: 10_000)?.first??.reason == "the folder is not empty")
        #expect(client.store.close(waitMilliseconds: 30_000))
    }

    @Test("a backup whose files cannot be written leaves nothing behind")
    func failedFile() throws {
        let folder = DurableFolder()
        let client = try StoreClient(at: folder.path, options: .small(), seed: 6)
        let parent = DurableFolder()
        let reply = try WorkQueue<StoreFailure?>(name: "reply")
        let files = [
            BackupFile(name: "bans", contents: [1]),
            // Longer than a name can be.
            BackupFile(name: String(repeating: "x", count: 300), contents: [2]),
        ]
        client.store.backup(to: "\(parent.path)/copy", with: files) { reply.post($0) }
        let failure = try #require(reply.takeAll(waitMilliseconds: 10_000)?.first)
        #expect(failure?.operation == "write")
        #expect(access("\(parent.path)/copy", F_OK) != 0)
        // The parent has nothing else, so that the copy can be made there.
        client.store.backup(to: parent.path, with: [files[0]]) { reply.post($0) }
        #expect(reply.takeAll(waitMilliseconds: 10_000) == [nil])
        #expect(client.store.close(waitMilliseconds: 30_000))
    }
}

/// The submitting thread, with a model of its records.
private final class StoreClient {
    let store: DurableStore
    var program: RecordProgram
    var batch = WriteBatch(isRecording: true)
    private(set) var completed: [UInt64] = []
    private let wakeups: WorkQueue<Void>
    /// The model at each read; it only grows until the read is answered.
    private var reads: [(request: QueueRead, items: [QueueItem])] = []

    init(at path: String, options: DurableStoreOptions, seed: UInt64) throws {
        let wakeups = try WorkQueue<Void>(name: "client")
        self.wakeups = wakeups
        program = RecordProgram(seed: seed)
        store = try DurableStore(directory: path, options: options) { wakeups.post(()) }
        try store.start()
    }

    func submit(groups: Int) {
        for _ in 0..<groups { program.addGroup(to: &batch) }
        store.submit(&batch)
    }

    func read() {
        let sessions = program.model.sessions.keys.sorted()
        guard let session = sessions.randomElement(using: &program.random),
            let end = program.model.sessions[session]?.end, end > 0
        else { return }
        let request = QueueRead(
            session: session, from: UInt64(program.random.number(in: 0...Int(end) - 1)), below: end,
            maxMessages: program.random.number(in: 1...20), maxBytes: 20_000,
            tag: UInt64(reads.count), ticket: batch.lastTicket)
        reads.append(
            (request, program.model.items(of: session, from: request.from, below: request.below)))
        store.read(request)
    }

    /// Takes completions and reads, waiting until so many tickets are complete.
    func takeAll(atLeast count: Int) throws {
        while true {
            var tickets: [ClosedRange<UInt64>] = []
            var slices: [QueueSlice] = []
            store.takeCompletions(&tickets)
            store.takeSlices(&slices)
            for range in tickets { completed += range }
            for slice in slices { try check(slice) }
            if completed.count >= count, count == 0 || reads.isEmpty { return }
            let woken: [Void]? = wakeups.takeAll(waitMilliseconds: 20_000)
            try #require(woken?.isEmpty == false, "the store did not wake its client")
        }
    }

    func waitForAll() throws { try takeAll(atLeast: Int(batch.lastTicket)) }

    private func check(_ slice: QueueSlice) throws {
        try #require(!reads.isEmpty)
        let (request, items) = reads.removeFirst()
        #expect(slice.request == request && slice.failure == nil)
        // Later submissions may be included or not. Earlier content is included unless it was
        // removed since.
        let now = program.model.sessions[request.session]?.queue
        let found = slice.items
        let expected = items.filter { $0.position < slice.next }
        #expect(found.allSatisfy { item in expected.contains { $0.position == item.position } })
        for item in expected {
            let other = found.first { $0.position == item.position }
            if let other {
                #expect(other == item || other.isReleased)
            } else {
                #expect(now?[item.position] == nil, "position \(item.position) is missing")
            }
        }
    }
}
