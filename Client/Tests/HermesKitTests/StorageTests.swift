import Foundation
import HermesClientCore
import NIOConcurrencyHelpers
import Testing

@testable import HermesKit

@Suite("Storage", .timeLimit(.minutes(2)))
struct StorageTests {
    private let folder = TestFolder()

    private func client() throws -> HermesClient {
        try HermesClient(
            .init(.plain("127.0.0.1"), clientID: "phone", storage: .file(folder.path + "/log")))
    }

    private func reason(_ body: () throws -> HermesClient) -> String {
        do {
            _ = try body()
            return "no error"
        } catch {
            return "\(error)"
        }
    }

    @Test("a second client with the same file is refused while the first lives")
    func locked() async throws {
        var first: HermesClient? = try client()
        #expect(reason(client).contains("is in use by another client"))
        await first?.stop()
        first = nil
        #expect(reason(client) == "no error")
    }

    @Test("another client's file is refused, with the cure, and stays as it was")
    func owner() async throws {
        do {
            let client = try client()
            _ = try await client.publish(.init(topic: "a", text: "1"))
        }
        let before = try Data(contentsOf: URL(fileURLWithPath: folder.path + "/log"))
        let text = reason {
            try HermesClient(
                .init(
                    .plain("127.0.0.1"), clientID: "tablet", storage: .file(folder.path + "/log")))
        }
        #expect(text.contains("belongs to the client \"phone\""))
        #expect(text.contains("file of its own"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.path + "/log")) == before)
        #expect(reason(client) == "no error")
    }

    @Test("a bit that flips costs one change, and is told with its size; the file is kept beside")
    func flippedBit() async throws {
        do {
            let client = try client()
            for number in 0..<20 {
                _ = try await client.publish(.init(topic: "a", text: "message \(number)"))
            }
        }
        let url = URL(fileURLWithPath: folder.path + "/log")
        let whole = try Data(contentsOf: url)
        for index in stride(from: 0, to: whole.count, by: 7) where index != 8 {
            var damaged = whole
            damaged[index] ^= 1 << UInt8(index % 8)
            try damaged.write(to: url)
            let client = try client()
            #expect(await client.outbox().count >= 19, "byte \(index)")
            var events = client.events.makeAsyncIterator()
            guard case .storageDamaged(let bytes, let setAside?)? = await events.next() else {
                Issue.record("byte \(index) is not told")
                return
            }
            #expect(0 < bytes && bytes < 200)
            #expect(try Data(contentsOf: URL(fileURLWithPath: setAside)) == damaged)
            await client.stop()
        }
    }

    @Test("survivesPowerLoss flushes the directory, at the beginning and with a new file")
    func directory() async throws {
        let before = synchronizedDirectories.withLockedValue { $0 }
        let (storage, _) = try StorageFile.open(folder.path + "/log", isSynchronized: true)
        try storage.replace(with: ClientLog.header)
        #expect(synchronizedDirectories.withLockedValue { $0 } >= before + 2)
    }

    @Test("what throws on a full disk is not kept, and the client goes on by itself")
    func fullDisk() async throws {
        let broker = try await TestBroker()
        let disk = FullDisk()
        let client = try HermesClient.of(broker, storage: .other { disk.storage() })
        client.start()
        try await client.subscribe("news", qos: .atLeastOnce)
        disk.isFull = true
        for _ in 0..<5 {
            await #expect(throws: HermesClientError.storage("the disk is full")) {
                try await client.publish(.init(topic: "news", text: "thrown"))
            }
        }
        await #expect(throws: HermesClientError.storage("the disk is full")) {
            try await client.subscribe("other", qos: .atLeastOnce)
        }
        let other = try HermesClient.of(broker, id: "other")
        other.start()
        try await other.publish(.init(topic: "news", text: "received")).acknowledged
        #expect(await client.take(1).map(\.text) == ["received"])
        disk.isFull = false
        try await client.publish(.init(topic: "news", text: "kept")).acknowledged
        #expect(await client.take(1).map(\.text) == ["kept"])
        var events: [HermesClient.Event] = []
        for await event in client.events {
            events.append(event)
            if event == .storageRecovered { break }
        }
        #expect(events == [.storageFailed("the disk is full"), .storageRecovered])
        await client.stop()
        await other.stop()
    }

    @Test("the last reference says DISCONNECT, and nothing of a storage that failed")
    func lastReference() async throws {
        let broker = try await TestBroker()
        var client: HermesClient? = try HermesClient.of(
            broker, storage: .file(folder.path + "/log"))
        client?.start()
        try await client?.connected()
        let states = try #require(client).states.makeAsyncIterator()
        var events = try #require(client).events.makeAsyncIterator()
        client = nil
        var last: HermesClient.State?
        while let state = await states.next() { last = state }
        #expect(last == .stopped(.requested))
        while let event = await events.next() { Issue.record("\(event)") }
    }

    @Test("a file that is none of a client, and one of a later version, are refused and kept")
    func foreignFiles() throws {
        for content in ["something else", "HERMESCL\u{2}"] {
            try content.write(toFile: folder.path + "/log", atomically: true, encoding: .utf8)
            #expect(reason(client).contains("not a client's file"))
            #expect(try String(contentsOfFile: folder.path + "/log", encoding: .utf8) == content)
        }
    }

    @Test("paths that cannot be used are told with the reason")
    func paths() throws {
        #expect(
            reason {
                try HermesClient(
                    .init(
                        .plain("127.0.0.1"), clientID: "phone",
                        storage: .file(folder.path + "/none/log")))
            }.contains("No such file or directory"))
        try FileManager.default.createDirectory(
            atPath: folder.path + "/log", withIntermediateDirectories: false)
        #expect(reason(client).contains("cannot open"))
    }

    @Test("what was published before a kill is there after it, whatever the kill cut off")
    func cut() async throws {
        do {
            let client = try client()
            for text in ["1", "2", "3"] {
                _ = try await client.publish(.init(topic: "a", text: text))
            }
        }
        let whole = try Data(contentsOf: URL(fileURLWithPath: folder.path + "/log"))
        for count in stride(from: whole.count, through: 0, by: -1) {
            let other = TestFolder()
            let path = other.path + "/log"
            try whole.prefix(count).write(to: URL(fileURLWithPath: path))
            let client = try HermesClient(
                .init(.plain("127.0.0.1"), clientID: "phone", storage: .file(path)))
            let kept = await client.statistics().unacknowledgedPublishes
            #expect(count == whole.count ? kept == 3 : kept < 3)
            // What was cut off does not hide what is written next.
            _ = try await client.publish(.init(topic: "a", text: "4"))
            let (_, recovery) = try readBack(path)
            #expect(recovery == kept + 1)
        }
    }

    /// The file's bytes and the number of messages in it, read without its lock.
    private func readBack(_ path: String) throws -> (Data, Int) {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let copy = TestFolder()
        try data.write(to: URL(fileURLWithPath: copy.path + "/log"))
        let (_, recovery) = try StorageFile.open(copy.path + "/log", isSynchronized: false)
        return (data, recovery.state.outbox.messages.count)
    }
}

/// A storage that keeps nothing, and has no room when it is told so.
private final class FullDisk: Sendable {
    private let full = NIOLockedValueBox(false)

    var isFull: Bool {
        get { full.withLockedValue { $0 } }
        set { full.withLockedValue { $0 = newValue } }
    }

    func storage() -> any ClientStorage { Disk(self) }

    private final class Disk: ClientStorage {
        private let disk: FullDisk
        let isReleased = false

        init(_ disk: FullDisk) { self.disk = disk }

        func append(_ frame: [UInt8]) throws(StorageError) { try replace(with: frame) }

        func replace(with file: [UInt8]) throws(StorageError) {
            if disk.isFull { throw StorageError(reason: "the disk is full") }
        }
    }
}
