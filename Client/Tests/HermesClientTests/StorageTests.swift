import Foundation
import Testing

@testable import HermesClient

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
