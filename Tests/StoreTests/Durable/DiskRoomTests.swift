import Glibc
import Testing

@testable import Store

@Suite("Room for what the store takes")
struct DiskRoomTests {
    @Test("a move needs its growth and its log, and gives its journal file back")
    func demand() {
        let page = DatabaseFormat.pageBytes
        var demand = DiskDemand(moves: [], databaseBytes: 10 * page, journalBytes: 0)
        #expect(demand.bytes == DiskDemand.slackBytes)
        demand.moves = [DiskDemand.Move(growth: 1_600, sessions: 2, fileBytes: 0)]
        #expect(demand.bytes - DiskDemand.slackBytes == 1_600 + 1_700 + 4 * page)
        // There are no more pages to touch than the database has.
        demand.moves[0].sessions = 100
        #expect(demand.bytes - DiskDemand.slackBytes == 1_600 + 1_700 + 10 * page)
        // The log of one move at a time, beside what the moves before it have left.
        demand.moves = [
            DiskDemand.Move(growth: 16_000, sessions: 0, fileBytes: 10_000),
            DiskDemand.Move(growth: 32_000, sessions: 0, fileBytes: 10_000),
            DiskDemand.Move(growth: 1_600, sessions: 0, fileBytes: 0),
        ]
        #expect(
            demand.bytes - DiskDemand.slackBytes == 16_000 - 10_000 + 32_000 + 34_000)
        demand.journalBytes = 7
        #expect(
            demand.bytes - DiskDemand.slackBytes == 16_000 - 10_000 + 32_000 + 34_000 + 7)
    }

    /// Sizes at which SQLite fills its pages badly are among these.
    @Test(
        "the database never grows by more than the estimate, and its log neither",
        arguments: [10, 300, 1_900, 2_100, 4_200, 5_000, 9_000, 17_000, 70_000, 300_000], [1, 50])
    func growth(payload: Int, sessions: Int) throws {
        var options = DurableStoreOptions.small()
        options.journal = JournalOptions(segmentBytes: 8 << 20, segmentCount: 3)
        let store = try SteppedStore(in: DurableFolder(), options: options)
        let count = max(20, min(2_000, 3_000_000 / payload))
        var number: UInt64 = 0
        // The second round comes between the rows of the first.
        for round in 0..<2 {
            for index in 0..<count {
                number += 1
                let session = UInt64(index % sessions + 1)
                let start: [StoreRecord] =
                    round == 0 && index < sessions
                    ? [.session(session, clientID: [UInt8(session)], userName: nil)] : []
                store.submit(
                    start + [
                        .message(
                            number, topic: [97], payload: testPayload(number, payload), qos: 1,
                            retain: false, expiresAtMs: 0),
                        .queued(
                            session: session, position: number, message: number, qos: 1,
                            retain: false, isInWindow: true),
                    ])
            }
            store.commit()
            let taken = store.committer.activeGrowth
            let before = try store.mover.database.usedBytes()
            try store.mover.database.checkpoint(cuts: true)
            try store.committer.beginSegment(1)
            let move = try #require(store.committer.moves.first)
            #expect(move.growth <= taken)
            let demand = DiskDemand(moves: [move], databaseBytes: before, journalBytes: 0)
            try store.mover.database.apply(content: store)
            let sizes = try store.mover.database.sizes()
            let grown = sizes.file - sizes.free - before
            #expect(grown <= move.growth + 4 * DatabaseFormat.pageBytes, "\(payload)")
            #expect(grown + sizes.writeAheadLog <= demand.bytes, "\(payload)")
            store.settle()
            #expect(store.committer.moves.isEmpty)
        }
    }
}

extension Database {
    /// Applies the oldest segment that waits in the store, as its mover would.
    fileprivate func apply(content store: SteppedStore) throws {
        let waiting = store.store.movers.takeAll(waitMilliseconds: 0) ?? []
        for task in waiting {
            if case .apply(var changes, let reader) = task {
                changes.sort()
                var content = SegmentBytes()
                try apply(changes) { (location) throws(StoreFailure) in
                    try content.read(location, reader)
                }
            }
            store.store.movers.post(task)
        }
    }
}

/// A small file system that the store fills until it takes no more.
@Suite(
    "Durable store on a disk that it fills itself",
    .enabled(if: TestVolume.isPermitted, "mounting a tmpfs needs root"))
struct FullDiskTests {
    static let reserve = 2 << 20
    private let volume: VolumeOwner
    private var path: String { volume.value.path + "/data" }

    private static var options: DurableStoreOptions {
        var options = DurableStoreOptions.small(segmentCount: 8)
        options.journal = JournalOptions(segmentBytes: 256 << 10, segmentCount: 8)
        options.reserveBytes = UInt64(reserve)
        return options
    }

    init() throws {
        volume = VolumeOwner(try TestVolume(bytes: 24 << 20))
        try #require(mkdir(path, 0o700) == 0)
    }

    private var free: Int {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Int(status.f_bavail) * Int(status.f_frsize) : 0
    }

    /// Fills the disk; the number of messages, all of which were stored.
    private func fill(
        _ store: SteppedStore, payload: Int, from first: UInt64 = 1
    ) throws -> UInt64 {
        var number = first - 1
        var refusals = 0
        while refusals < 20 {
            guard store.store.isAccepting, store.store.room >= 0 else {
                refusals += 1
                store.settle()
                usleep(5_000)
                continue
            }
            refusals = 0
            number += 1
            store.submit(message: number, payload: payload)
            store.commit()
            if number % 7 == 0 { store.move() }
            let left = free
            try #require(left >= Self.reserve / 2, "\(left) bytes left after message \(number)")
            try #require(number < 100_000)
        }
        #expect(store.completed.last == store.lastTicket)
        #expect(store.store.figures.failures == 0 && store.store.figures.moverFailure == nil)
        return number
    }

    /// Runs the threads until messages are taken again and the files are small.
    private func heal(_ store: SteppedStore) throws {
        for _ in 0..<400 {
            store.settle()
            let sizes = try store.mover.database.sizes()
            if store.store.isAccepting, sizes.file + sizes.writeAheadLog < 6 << 20 { break }
            usleep(5_000)
        }
        let sizes = try store.mover.database.sizes()
        #expect(sizes.file + sizes.writeAheadLog < 6 << 20, "\(sizes)")
        #expect(store.store.isAccepting)
        #expect(store.store.figures.failures == 0)
    }

    @Test(
        "the reserve stays free, and when all is done, messages are taken again",
        arguments: [300, 1_500, 5_000, 40_000])
    func heals(payload: Int) throws {
        let store = try SteppedStore(at: path, options: Self.options)
        let count = try fill(store, payload: payload)
        #expect(Int(count) * payload > (payload < 1_000 ? 1 << 19 : 4 << 20))
        for number in 1...count {
            store.submit([.finished(session: 1, position: number)])
        }
        try heal(store)
        #expect(try store.wholeQueueItems().isEmpty)
        // And the disk is as good as it was.
        let again = try fill(store, payload: payload, from: count + 1)
        #expect(again - count > count / 2)
    }

    @Test("a store starts on a disk that others have filled to the last byte")
    func startsWhenFull() throws {
        var count: UInt64 = 0
        do {
            let store = try SteppedStore(at: path, options: Self.options)
            count = try fill(store, payload: 5_000)
        }
        try volume.value.fill()
        // The first start takes what there is, and a second one still has enough.
        do {
            let store = try SteppedStore(at: path, options: Self.options)
            #expect(!store.store.isAccepting)
        }
        let store = try SteppedStore(at: path, options: Self.options)
        #expect(store.store.recovery.report.damage == [])
        #expect(try store.wholeQueueItems().count == Int(count))
        try volume.value.empty()
        for number in 1...count {
            store.submit([.finished(session: 1, position: number)])
        }
        try heal(store)
    }

    @Test("a crash amid removals ahead of their segment counts what is left")
    func crashAmidRemovals() throws {
        do {
            let store = try SteppedStore(at: path, options: Self.options)
            let count = try fill(store, payload: 1_500)
            for number in 1...count / 2 {
                store.submit([.finished(session: 1, position: number)])
            }
            store.commit()
            try store.committer.beginSegment(1)
            for task in store.store.movers.takeAll(waitMilliseconds: 0) ?? [] {
                guard case .apply(let changes, _) = task else { continue }
                let slices = try RemovalSlices(of: [changes], in: store.mover.database)
                // Not the last one, and its segment is not applied.
                #expect(try slices.run())
            }
        }
        let store = try SteppedStore(at: path, options: Self.options)
        #expect(store.mover.database.removedAhead > 0)
        let model = try #require(try store.restoredModel())
        let left = try store.wholeQueueItems().count
        #expect(left > 0 && store.restored.waiting[1]?.messages == left)
        #expect(model.sessions[1]?.queue.count == left)
        store.settle()
        #expect(try DatabaseCheck(directory: path).run() == [])
    }
}

/// Keeps a volume mounted as long as a suite lives.
private final class VolumeOwner {
    let value: TestVolume
    init(_ value: consuming TestVolume) { self.value = value }
}
