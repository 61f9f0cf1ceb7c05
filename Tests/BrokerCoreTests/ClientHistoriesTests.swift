import BrokerAPI
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("What happened to a client lately")
struct ClientHistoriesTests {
    private typealias Happening = ClientHistories.Happening

    private static func histories() -> ClientHistories {
        ClientHistories(hash: KeyedHash(seed: 1), pool: BytePool())
    }

    private static func history(
        _ histories: borrowing ClientHistories, _ clientID: String
    ) -> ClientHistory {
        histories.history(of: clientID) { String(decoding: $0, as: UTF8.self) }
    }

    @Test("the last eight events of each client are kept, the newest first")
    func events() {
        var histories = Self.histories()
        for time in 1...20 {
            let kind: ClientEvent.Kind = time % 2 == 0 ? .disconnected : .connected
            histories.note(
                Happening(
                    kind, reason: "r", address: Array("192.0.2.1:\(time)".utf8), userName: [0x61]),
                to: [0x70], atMs: Int64(time), limit: 1 << 20)
        }
        let history = Self.history(histories, "p")
        #expect(history.clientID == "p")
        #expect(history.events.map(\.lastMs) == (13...20).reversed())
        #expect(
            history.events.first
                == ClientEvent(
                    kind: .disconnected, firstMs: 20, lastMs: 20, count: 1, reason: "r",
                    address: "192.0.2.1:20", userName: "a"))
        let unknown = Self.history(histories, "q").events
        #expect(unknown.isEmpty)
    }

    @Test("the same loss or refusal in a row is one event with its number")
    func repeats() {
        var histories = Self.histories()
        for (time, count) in [(1_500, 2), (5_700, 3)] as [(Int64, UInt64)] {
            histories.note(
                Happening(.lostMessages, reason: "queue_full", topic: [0x74], count: count),
                to: [0x70], atMs: time, limit: 1 << 20)
        }
        histories.note(
            Happening(.lostMessages, reason: "expired"), to: [0x70], atMs: 6_000, limit: 1 << 20)
        let events = Self.history(histories, "p").events
        #expect(
            events == [
                ClientEvent(
                    kind: .lostMessages, firstMs: 6_000, lastMs: 6_000, count: 1, reason: "expired"),
                ClientEvent(
                    kind: .lostMessages, firstMs: 1_500, lastMs: 5_700, count: 5,
                    reason: "queue_full",
                    topic: "t"),
            ])
    }

    @Test("the begin of a connection that is noted after its events stands before them")
    func lateBegin() {
        var histories = Self.histories()
        let phone: [UInt8] = [0x70]
        let heldBefore = histories.holds(phone)
        #expect(!heldBefore)
        for time in 11...13 as ClosedRange<Int64> {
            histories.note(
                Happening(.denied, reason: "at \(time)"), to: phone, atMs: time, limit: 1 << 20)
        }
        let holds = histories.holds(phone)
        #expect(holds)
        histories.note(Happening(.connected, reason: "new"), to: phone, atMs: 10, limit: 1 << 20)
        histories.note(Happening(.disconnected, reason: "x"), to: phone, atMs: 14, limit: 1 << 20)
        let all = Self.history(histories, "p").events
        #expect(all.map(\.firstMs) == [14, 13, 12, 11, 10])
        // The oldest of nine events goes, though it was not the first to be noted.
        for time in 15...18 as ClosedRange<Int64> {
            histories.note(
                Happening(.denied, reason: "at \(time)"), to: phone, atMs: time, limit: 1 << 20)
        }
        let events = Self.history(histories, "p").events
        #expect(events.map(\.firstMs) == (11...18).reversed())
    }

    @Test("a client and an event take what docs/limits.md says")
    func sizes() {
        #expect(MemoryLayout<ClientHistories.Record>.stride + 16 == 56)
        #expect(ClientTroubles.recordBytes == 56)
        #expect(MemoryLayout<ClientHistories.Event>.stride == 64)
    }

    @Test("clients in trouble come with their newest one, the newest first")
    func troubles() {
        var histories = Self.histories()
        func note(_ kind: ClientEvent.Kind, _ reason: String, _ client: String, _ time: Int64) {
            histories.note(
                Happening(kind, reason: reason), to: Array(client.utf8), atMs: time, limit: 1 << 20)
        }
        func found(_ kind: ClientEvent.Kind? = nil, limit: Int = 9) -> [String] {
            histories.troubles(kind, limit: limit) { String(decoding: $0, as: UTF8.self) }
                .map { "\($0.clientID) \($0.event.reason) \($0.event.lastMs)" }
        }
        for client in ["a", "b", "c", "d"] { note(.connected, "new", client, 1) }
        note(.refused, "banned", "a", 2)
        note(.disconnected, "taken_over", "b", 3)
        note(.disconnected, "peer_closed", "c", 4)
        note(.refused, "locked_out", "d", 4)
        note(.denied, "subscribe", "a", 5)
        note(.connected, "resumed", "a", 6)
        #expect(found() == ["a subscribe 5", "d locked_out 4", "b taken_over 3"])
        #expect(found(.refused) == ["d locked_out 4", "a banned 2"])
        #expect(found(.refused, limit: 1) == ["d locked_out 4"])
        #expect(found(limit: 1) == ["a subscribe 5"])
        // Eight later events displace what came before.
        for time in 7...14 { note(.connected, "resumed", "b", Int64(time)) }
        #expect(found() == ["a subscribe 5", "d locked_out 4"])
        histories.trim(to: 0)
        #expect(found().isEmpty)
    }

    @Test("take-overs that alternate with connections are counted, all of them")
    func takeOvers() {
        var histories = Self.histories()
        for time in 0..<1_220 {
            let happening =
                time % 2 == 0
                ? Happening(.connected, reason: "resumed")
                : Happening(.disconnected, reason: "taken_over")
            histories.note(happening, to: [0x70], atMs: Int64(time), limit: 1 << 20)
        }
        let troubles = histories.troubles(nil, limit: 9) { _ in "" }.map(\.event)
        #expect(troubles.map(\.count) == [610])
        #expect(troubles.map(\.firstMs) == [1] && troubles.map(\.lastMs) == [1_219])
        #expect(troubles.map(\.kind) == [.disconnected])
    }

    @Test("a client that comes and goes is in trouble, one that does so now and then is not")
    func flapping() {
        var histories = Self.histories()
        func round(_ client: String, _ time: Int64) {
            for kind in [ClientEvent.Kind.connected, .disconnected] {
                histories.note(
                    Happening(kind, reason: kind == .connected ? "new" : "peer_closed"),
                    to: Array(client.utf8), atMs: time, limit: 1 << 20)
            }
        }
        for number in 0..<40 {
            round("wild", Int64(number) * 1_000)
            round("calm", Int64(number) * 30_000)
        }
        func found(_ kind: ClientEvent.Kind?) -> [ClientTrouble] {
            histories.troubles(kind, limit: 9) { _ in "" }
        }
        for kind in [nil, ClientEvent.Kind.flapping] {
            #expect(found(kind).map(\.clientID) == ["wild"])
            #expect(found(kind).first?.event.kind == .flapping)
            #expect(found(kind).first?.event.count == 40)
            #expect(found(kind).first?.event.firstMs == 0)
        }
        let others = found(.disconnected)
        #expect(others.isEmpty)
        // A day later it begins anew.
        for number in 0..<4 { round("wild", 86_400_000 + Int64(number)) }
        #expect(found(nil).first?.event.count == 4)
    }

    @Test("a repetition tells of the last one")
    func newest() {
        var histories = Self.histories()
        for address in ["192.0.2.1:1", "198.51.100.77:50000", "10.0.0.1:9"] {
            histories.note(
                Happening(.refused, reason: "not_authorized", address: Array(address.utf8)),
                to: [0x70], atMs: 1, limit: 1 << 20)
        }
        let events = Self.history(histories, "p").events
        #expect(events.map(\.address) == ["10.0.0.1:9"])
        #expect(events.map(\.count) == [3])
    }

    @Test("histories stay within their bytes; invented clients displace no real ones")
    func bounded() {
        var histories = Self.histories()
        let limit = 64 * 1_024
        for number in 0..<20 {
            histories.note(
                Happening(.connected, reason: "new"), to: Array("real-\(number)".utf8), atMs: 1,
                limit: limit)
        }
        for number in 0..<10_000 {
            histories.note(
                Happening(
                    .refused, reason: "not_authorized", address: Array("192.0.2.1:50000".utf8)),
                to: Array("invented-\(number)".utf8), atMs: 2, limit: limit)
        }
        let bytes = histories.bytes
        #expect(bytes <= limit && bytes > limit / 10)
        for number in 0..<20 {
            let kept = Self.history(histories, "real-\(number)").events.count
            #expect(kept == 1)
        }
        let (last, first) = (
            Self.history(histories, "invented-9999"), Self.history(histories, "invented-0")
        )
        #expect(last.events.count == 1)
        #expect(first.events.isEmpty)
        // Real ones displace the longest unchanged.
        for number in 20..<1_000 {
            histories.note(
                Happening(.connected, reason: "new"), to: Array("real-\(number)".utf8), atMs: 3,
                limit: limit)
        }
        let (gone, here) = (Self.history(histories, "real-0"), Self.history(histories, "real-999"))
        #expect(gone.events.isEmpty && here.events.count == 1)
        let after = histories.bytes
        #expect(after <= limit)
        histories.note(Happening(.connected, reason: "new"), to: [0x70], atMs: 4, limit: 0)
        let off = Self.history(histories, "p").events
        #expect(off.isEmpty)
    }

    @Test("texts are cut between characters, and nothing of the pool is left behind")
    func texts() {
        let pool = BytePool()
        let before = pool.bytesInUse
        do {
            var histories = ClientHistories(hash: KeyedHash(seed: 1), pool: pool)
            let long = Array(String(repeating: "ä", count: 200).utf8.dropFirst()) + [0x61]
            for time in 0..<50 {
                histories.note(
                    Happening(
                        time % 2 == 0 ? .connected : .disconnected,
                        reason: "a reason of some length",
                        userName: Array(("x" + String(repeating: "ä", count: 200)).utf8),
                        topic: long),
                    to: [0x70], atMs: Int64(time), limit: 1 << 20)
            }
            let name = Self.history(histories, "p").events.first?.userName
            #expect(name == "x" + String(repeating: "ä", count: 127))
            // A limit that lets nothing stay.
            histories.note(Happening(.connected, reason: ""), to: [0x70], atMs: 1, limit: 1)
            let bytes = histories.bytes
            #expect(bytes == 0)
        }
        #expect(pool.bytesInUse == before)
    }
}
