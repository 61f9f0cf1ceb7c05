import MQTTCodec
import Testing

@testable import HermesClientCore

@Suite("The client's log")
struct ClientLogTests {
    @Test("the checksum is CRC-32C", arguments: [("123456789", UInt32(0xE306_9283)), ("", 0)])
    func checksum(text: String, sum: UInt32) {
        #expect(Checksum.crc32c(Array(text.utf8)) == sum)
        let bytes = Array(text.utf8)
        let first = Checksum.crc32c(bytes.prefix(4))
        #expect(Checksum.crc32c(bytes.dropFirst(4), continuing: first) == sum)
    }

    @Test("a file cut at any byte holds the whole frames before the cut")
    func cuts() throws {
        var random = SplitMix64(seed: 7)
        var file = ClientLog.header
        // The length of the file and the state, after each frame.
        var sound: [(length: Int, state: StoredState)] = [(file.count, StoredState())]
        for _ in 0..<40 {
            let records = (0...random.number(in: 0...3)).map { _ in RandomRecord.next(&random) }
            var state = sound[sound.count - 1].state
            for record in records { state.apply(record) }
            file += Self.frame(records)
            sound.append((file.count, state))
        }
        for length in 0...file.count {
            let recovery = try ClientLog.recover(Array(file.prefix(length)))
            guard let last = sound.last(where: { $0.length <= length }) else {
                #expect(recovery.state == StoredState() && recovery.soundBytes == 0)
                continue
            }
            #expect(recovery.state == last.state, "cut at \(length)")
            #expect(recovery.soundBytes == last.length)
            #expect(recovery.droppedBytes == length - last.length)
        }
    }

    @Test("a byte that has changed costs the frame that it is in, is counted, and never traps")
    func damage() throws {
        var random = SplitMix64(seed: 8)
        var file = ClientLog.header
        let records = (0..<30).map { _ in RandomRecord.next(&random) }
        var ends = [file.count]
        for record in records {
            file += Self.frame([record])
            ends.append(file.count)
        }
        for index in file.indices {
            var damaged = file
            let flips = UInt8(random.number(in: 1...255))
            damaged[index] ^= flips
            guard index >= ClientLog.header.count || flips.nonzeroBitCount <= 2 else {
                #expect(throws: ClientLog.UnknownFile()) { try ClientLog.recover(damaged) }
                continue
            }
            guard index != ClientLog.header.count - 1 else {
                // Another version.
                #expect(throws: ClientLog.UnknownFile()) { try ClientLog.recover(damaged) }
                continue
            }
            let place = ends.firstIndex { $0 > index } ?? 0
            var expected = StoredState()
            for (number, record) in records.enumerated() where number != place - 1 {
                expected.apply(record)
            }
            expected.noteDamage()
            let recovery = try ClientLog.recover(damaged)
            #expect(recovery.state == expected, "byte \(index)")
            let size = place == 0 ? ends[0] : ends[place] - ends[place - 1]
            #expect(recovery.damagedBytes == size, "byte \(index)")
            #expect(recovery.droppedBytes == 0)
        }
    }

    @Test("records behind a right checksum that are none end the log, whatever their bytes")
    func wrongRecords() throws {
        for seed in UInt64(1)...2_000 {
            var random = SplitMix64(seed: seed)
            var writer = RecordWriter()
            if random.once(in: 2) { RandomRecord.next(&random).encode(to: &writer) }
            var bytes = writer.bytes + random.bytes(random.number(in: 0...40))
            if !bytes.isEmpty, random.once(in: 2) {
                bytes[random.number(in: 0...bytes.count - 1)] = UInt8(random.number(in: 0...20))
            }
            var raw = RecordWriter()
            for byte in bytes { raw.append(byte) }
            let recovery = try ClientLog.recover(ClientLog.header + ClientLog.frame(raw))
            // A state that was read can be written and read again.
            let again = try ClientLog.recover(ClientLog.file(recovery.state))
            #expect(again.state == recovery.state, "seed \(seed)")
        }
    }

    @Test("a compacted file holds the same state, and no record changes in the log")
    func compaction() throws {
        for seed in UInt64(1)...200 {
            var random = SplitMix64(seed: seed)
            var state = StoredState()
            var file = ClientLog.header
            for _ in 0..<random.number(in: 0...120) {
                let record = RandomRecord.next(&random)
                state.apply(record)
                file += Self.frame([record])
            }
            #expect(try ClientLog.recover(file).state == state, "seed \(seed)")
            let compacted = try ClientLog.recover(ClientLog.file(state))
            #expect(compacted.state == state, "seed \(seed)")
            #expect(compacted.droppedBytes == 0)
        }
    }

    @Test("a damaged end of a message leaves no second one with its key or identifier")
    func damagedEnd() throws {
        func message(_ key: UInt64, _ position: UInt64) -> StoredRecord {
            .queued(
                OutgoingMessage(
                    key: key, identifier: PacketIdentifier(position: position), topic: [1],
                    payload: [2], qos: .exactlyOnce, retain: false))
        }
        // The second life begins with an empty outbox, and therefore with the first key again.
        for second in [message(1, 8), message(2, 7)] {
            for held in [[], [StoredRecord.heldBack(1)]] {
                let records = [message(1, 7)] + held + [.finished(1), second]
                var file = ClientLog.header
                for record in records {
                    var frame = Self.frame([record])
                    if record == .finished(1) { frame[frame.count - 1] ^= 1 }
                    file += frame
                }
                let recovery = try ClientLog.recover(file)
                #expect(recovery.damagedBytes > 0)
                let outbox = recovery.state.outbox
                #expect(outbox.held.isEmpty)
                #expect(outbox.messages.map { StoredRecord.queued($0) } == [second])
                #expect(outbox.bytes == 2)
            }
        }
    }

    @Test("another file is refused and not overwritten")
    func unknown() {
        #expect(throws: ClientLog.UnknownFile()) { try ClientLog.recover(Array("SQLite".utf8)) }
        #expect(throws: ClientLog.UnknownFile()) {
            try ClientLog.recover(Array("HERMESCL".utf8) + [2])
        }
    }

    private static func frame(_ records: [StoredRecord]) -> [UInt8] {
        var writer = RecordWriter()
        for record in records { record.encode(to: &writer) }
        return ClientLog.frame(writer)
    }
}

/// Records of all kinds over a few names and numbers, so that they meet each other.
enum RandomRecord {
    static func next(_ random: inout SplitMix64) -> StoredRecord {
        let key = UInt64(random.number(in: 1...12))
        let name = [UInt8](repeating: UInt8(random.number(in: 97...101)), count: 3)
        let identifier = PacketIdentifier(position: UInt64(random.number(in: 0...6)))
        let sequence = UInt64(random.number(in: 1...3_000))
        switch random.number(in: 0...24) {
        case 24: return .cleanSessionStarted
        case 0: return .sessionStarted
        case 1: return .sessionResumed(isCertain: random.once(in: 2))
        case 14: return .connecting
        case 2:
            return .queued(
                OutgoingMessage(
                    key: key, identifier: identifier, topic: name,
                    payload: random.bytes(random.number(in: 0...9)),
                    qos: random.once(in: 2) ? .atLeastOnce : .exactlyOnce,
                    retain: random.once(in: 2)))
        case 3: return .released(key)
        case 4: return .finished(key)
        case 5: return .received(identifier, digest: random.next())
        case 6: return .receivedReleased(identifier)
        case 7:
            let states: [Subscription.State] = [
                .wanted, .granted(random.pick(QoS.allCases)), .lost, .unwanted,
            ]
            return .subscription(
                Subscription(
                    filter: name, qos: random.pick(QoS.allCases), state: random.pick(states)))
        case 8: return .subscriptionForgotten(name)
        case 9:
            return .sequence(
                SequenceNumbers(
                    channel: name, sequence: sequence,
                    publishedAtMilliseconds: Int64(random.number(in: 0...9)),
                    superseded: [max(1, sequence / 2)]))
        case 10: return .lossTold(name, upTo: sequence, count: key)
        case 11: return .channel(name, ChannelWindow(baseline: sequence))
        case 12: return .messageName(random.bytes(random.number(in: 0...200)))
        case 13:
            var rhythm = SmartRhythm(changedAtUnixMilliseconds: Int64(sequence))
            rhythm.seconds = UInt16(random.number(in: 120...580))
            rhythm.search = random.pick([.coarse, .fine, .stable])
            rhythm.successes = UInt8(random.number(in: 0...4))
            rhythm.failures = UInt8(random.number(in: 0...1))
            return .rhythm(name, rhythm)
        case 16: return .heldBack(key)
        case 17: return .retried(key)
        case 18: return .discarded(key)
        case 19: return .reportRefused(at: Int64(sequence))
        case 20: return .counted(received: UInt32(key), duplicates: 1)
        case 21: return .baselineForgotten(name)
        case 22: return .owner(name)
        case 23:
            return .subscription(
                Subscription(
                    filter: name, qos: .atLeastOnce, state: .wanted, countsLosses: false))
        default:
            var counters = ClientCounters()
            counters.received = random.next()
            counters.published = random.next()
            counters.sinceUnixMilliseconds = Int64(sequence)
            return .counters(counters)
        }
    }
}
