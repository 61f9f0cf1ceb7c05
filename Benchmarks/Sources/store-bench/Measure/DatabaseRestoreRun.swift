import Glibc
import Store

/// A stored state of a given size, and the time to stream it.
struct DatabaseRestoreRun {
    let directory: String
    let sessions: Int
    let subscriptions: Int
    let queued: Int

    /// The content restored by one start.
    private struct Loaded {
        var sessions = 0
        var subscriptions = 0
        var retained = 0
        var wills = 0
        var bytes = 0
    }

    /// One row of figures.
    func measure() throws -> [Double?] {
        let size = try fill()
        try dropPageCache()
        let (cold, _, _) = try load()
        let (warm, cpu, loaded) = try load()
        return [
            Double(queued), Double(cold) / 1e6, Double(warm) / 1e6, Double(cpu) / 1e6,
            Double(loaded.sessions), Double(loaded.subscriptions), Double(loaded.retained),
            Double(loaded.wills), Double(size),
        ]
    }

    private func fill() throws -> Int {
        let database = try Database(directory: directory)
        var number: UInt64 = 0
        func message(_ segment: inout DatabaseSegment, _ topic: [UInt8]) -> UInt64 {
            number += 1
            segment.message(number, topic: topic, payload: [UInt8](repeating: 7, count: 200))
            return number
        }
        var segment = DatabaseSegment(1)
        for session in 1...UInt64(sessions) {
            segment.session(session, end: 1_000_000)
            for index in 0..<subscriptions {
                segment.subscription(session, "orders/s-\(session)/\(index)/#")
            }
            guard session % 100 == 0 else { continue }
            segment.will(session, message: message(&segment, Array("wills/\(session)".utf8)))
            let topic = Array("retained/\(session)".utf8)
            segment.retained(topic, message: message(&segment, topic))
        }
        try segment.apply(to: database)
        var done = 0
        var segmentNumber: UInt64 = 1
        while done < queued {
            segmentNumber += 1
            var segment = DatabaseSegment(segmentNumber)
            for _ in 0..<min(50_000, queued - done) {
                let session = UInt64(done % sessions + 1)
                let position = UInt64(done / sessions + 1)
                segment.queued(
                    session, position,
                    message: message(&segment, Array("orders/s-\(session)/status".utf8)))
                done += 1
            }
            segment.sort()
            try segment.apply(to: database)
            try database.checkpoint()
        }
        try database.checkpoint()
        return try database.sizes().file
    }

    /// Asks the kernel to forget the file's pages; they are all on the disk.
    private func dropPageCache() throws {
        let path = directory + "/hermes.sqlite"
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0, fsync(descriptor) == 0,
            posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0
        else {
            throw BenchFailure(
                "\(Text.visible(path)) cannot be dropped from the page cache: "
                    + String(cString: strerror(errno)))
        }
        close(descriptor)
    }

    private func load() throws -> (wall: UInt64, cpu: UInt64, loaded: Loaded) {
        let cpu = CPUTime.now()
        let start = Clock.nanoseconds()
        let database = try Database(directory: directory)
        var loaded = Loaded()
        try database.forEachSession {
            loaded.sessions += 1
            loaded.bytes += $0.clientID.count + ($0.userName?.count ?? 0)
        }
        try database.forEachSubscription { _, filter, _ in
            loaded.subscriptions += 1
            loaded.bytes += filter.count
        }
        try database.forEachInbound { _, _ in }
        try database.forEachRetained {
            loaded.retained += 1
            loaded.bytes += $0.topic.count + $0.payload.count
        }
        try database.forEachWill { _, message in
            loaded.wills += 1
            loaded.bytes += message.payload.count
        }
        try database.forEachFact { _ in }
        return (Clock.nanoseconds() - start, (CPUTime.now() - cpu).total, loaded)
    }
}
