import HermesTesting
import Testing

@testable import Store

@Suite("Database against a model")
struct DatabaseProgramTests {
    @Test("after any program of segments the database equals the model", arguments: UInt64(1)...16)
    func programs(seed: UInt64) throws {
        var folder = DatabaseFolder()
        var database = try Database(directory: folder.path)
        var program = SegmentProgram(seed: seed)
        for _ in 1...20 {
            let segment = program.nextSegment()
            #expect(try segment.apply(to: database))
            #expect(try !segment.apply(to: database), "a segment is taken in once")
            if program.random.once(in: 3) { try database.checkpoint() }
            if program.random.once(in: 5) { _ = try database.reclaim(mostPages: 3) }
            if program.random.once(in: 4) {
                folder = folder.copyAfterCrash()
                database = try Database(directory: folder.path)
            }
            let found = try StoreModel(
                reading: database, folder: folder,
                windowMessages: program.random.number(in: 1...20))
            #expect(found == program.model, "replay with seed \(seed)")
            #expect(try DatabaseCheck(directory: folder.path).run() == [])
        }
    }
}

/// Segments as a broker could write them, drawn from a seed, and the model of their content.
struct SegmentProgram {
    var random: SplitMix64
    private(set) var model = StoreModel()
    private var segmentNumber: UInt64 = 0
    private var lastSession: UInt64 = 0
    private var lastMessage: UInt64 = 0

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func nextSegment() -> SegmentBuilder {
        segmentNumber += UInt64(random.number(in: 1...2))
        var segment = SegmentBuilder(segmentNumber)
        let before = model.sessions
        var alive = before.keys.sorted()
        alive.removeAll { number in
            guard random.once(in: 12) else { return false }
            segment.changes.removedSessions.append(number)
            return true
        }
        var ends = Dictionary(uniqueKeysWithValues: alive.map { ($0, before[$0]?.end ?? 0) })
        for _ in 0..<random.number(in: 0...2) {
            lastSession += UInt64(random.number(in: 1...2))
            let name = random.bytes(random.number(in: 0...30))
            segment.changes.newSessions.append(
                SegmentChanges.NewSession(
                    number: lastSession, clientID: name + lastSession.description.utf8,
                    userName: random.once(in: 2) ? random.bytes(random.number(in: 0...9)) : nil))
            alive.append(lastSession)
            ends[lastSession] = UInt64(random.number(in: 0...5))
        }
        segment.changes.endedSessions = alive.filter { _ in random.once(in: 15) }
        queue(alive, &ends, &segment)
        acknowledge(alive, before, &segment)
        for session in alive {
            change(session, end: ends[session] ?? 0, before[session], &segment)
        }
        retain(&segment)
        segment.changes.lastSession = lastSession
        segment.changes.lastMessage = lastMessage
        segment.changes.queued.sort { ($0.session, $0.position) < ($1.session, $1.position) }
        model.apply(segment)
        return segment
    }

    private mutating func message(_ segment: inout SegmentBuilder, topic: [UInt8]? = nil) -> UInt64
    {
        lastMessage += UInt64(random.number(in: 1...3))
        let size =
            random.once(in: 150) ? random.number(in: 1...700_000) : random.number(in: 0...300)
        segment.message(
            lastMessage, topic: topic ?? random.bytes(random.number(in: 0...40)),
            payload: random.bytes(size), qos: UInt8(random.number(in: 0...2)),
            retain: random.once(in: 2), expiresAtMs: Int64(random.number(in: 0...9)),
            messageID: random.bytes(random.once(in: 2) ? 0 : random.number(in: 1...255)))
        return lastMessage
    }

    private mutating func queue(
        _ alive: [UInt64], _ ends: inout [UInt64: UInt64], _ segment: inout SegmentBuilder
    ) {
        guard !alive.isEmpty else { return }
        for _ in 0..<random.number(in: 0...30) {
            let number = message(&segment)
            let receivers = random.once(in: 4) ? random.number(in: 1...alive.count) : 1
            for session in alive.shuffled(using: &random).prefix(receivers) {
                let position = (ends[session] ?? 0) + UInt64(random.number(in: 0...1))
                ends[session] = position + 1
                segment.queued(
                    session, position, message: number, qos: UInt8(random.number(in: 1...2)),
                    retain: random.once(in: 5), isReleased: random.once(in: 10),
                    shared: random.once(in: 4) ? "$share/g/\(random.number(in: 0...3))" : nil)
            }
        }
    }

    /// Acknowledges positions of earlier segments.
    private mutating func acknowledge(
        _ alive: [UInt64], _ before: [UInt64: StoreModel.Session], _ segment: inout SegmentBuilder
    ) {
        for session in alive {
            guard let end = before[session]?.end, end > 0 else { continue }
            var position = UInt64(0)
            while position < end {
                let last = min(position + UInt64(random.number(in: 0...9)), end - 1)
                if random.once(in: 3) {
                    segment.finished(session, position...last)
                } else if random.once(in: 3) {
                    segment.released(session, position...last)
                }
                position = last + 1
            }
        }
    }

    private mutating func change(
        _ session: UInt64, end: UInt64, _ before: StoreModel.Session?,
        _ segment: inout SegmentBuilder
    ) {
        segment.state(
            session, isAttached: random.once(in: 2) ? random.once(in: 2) : nil,
            detachedSinceMs: random.once(in: 2) ? Int64(random.number(in: 0...1_000)) : nil,
            horizon: random.once(in: 2) ? UInt64(random.number(in: 0...Int(end))) : nil, end: end)
        for _ in 0..<random.number(in: 0...2) {
            segment.subscription(
                session, "filter/\(random.number(in: 0...5))",
                qos: random.once(in: 3) ? nil : UInt32(random.number(in: 0...2)))
        }
        for _ in 0..<random.number(in: 0...2) {
            segment.inbound(
                session, UInt16(random.number(in: 1...6)), isPresent: !random.once(in: 3))
        }
        if random.once(in: 3) {
            segment.will(session, message: random.once(in: 3) ? nil : message(&segment))
        }
    }

    private mutating func retain(_ segment: inout SegmentBuilder) {
        for topic in 0...6 where random.once(in: 3) {
            let name = "retained/\(topic)"
            guard !random.once(in: 3) else {
                segment.retained(name, message: nil)
                continue
            }
            let number = message(&segment, topic: Array(name.utf8))
            segment.retained(name, message: number)
            // It may also be queued for a receiver.
            if random.once(in: 2), let last = segment.changes.queued.last,
                let state = segment.changes.sessionStates.last(where: { $0.number == last.session }
                ),
                let end = state.end
            {
                segment.queued(last.session, end, message: number)
                for index in segment.changes.sessionStates.indices
                where segment.changes.sessionStates[index].number == last.session {
                    segment.changes.sessionStates[index].end = end + 1
                }
            }
        }
        for channel in 0...3 where random.once(in: 2) {
            segment.fact(
                UInt8(channel % 2), "channel/\(channel)",
                random.once(in: 4) ? nil : random.bytes(random.number(in: 0...20)))
        }
    }
}
