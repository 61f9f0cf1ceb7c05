import BrokerAPI
import FoundationEssentials
import Testing

@testable import OperatorCLI

@Suite("Commands about queues and the store")
struct StoreCommandTests {
    private static let messages = [
        QueuedMessage(
            position: 17, state: .inFlight, topic: "orders/7\u{1B}", qos: 1, retain: false,
            payloadBytes: 120, expiresAtMs: now + 200_000, messageID: "m-17"),
        QueuedMessage(
            position: 18, state: .released, topic: nil, qos: 2, retain: false, payloadBytes: 0),
        QueuedMessage(
            position: 19, state: .waiting, topic: "orders/7", qos: 2, retain: true,
            payloadBytes: 8),
    ]

    @Test("queue show lists a client's queue, oldest first")
    func show() async throws {
        let page = QueuePage(clientID: "phone/1", messages: Self.messages)
        let run = try await run(["queue", "show", "phone/1"], answers: [.ok(page)])
        #expect(
            run.output == """
                POSITION  STATE      QOS  RETAIN  BYTES  EXPIRES IN  MESSAGE  TOPIC
                      17  in flight    1  no        120      3m 20s  m-17     orders/7\\u{1B}
                      18  released     2  no          0           -  -        -
                      19  waiting      2  yes         8           -  -        orders/7

                """)
        #expect(
            run.requests == [
                AdminRequest(
                    method: .get,
                    url: "http://127.0.0.1:8080/v1/clients/phone%2F1/queue?limit=100",
                    token: "secret", body: nil)
            ])
        #expect(run.exitCode == 0)
        #expect(run.errors.isEmpty)
    }

    @Test("queue show follows cursors up to its limit, and says when there is more")
    func pages() async throws {
        let first = QueuePage(
            clientID: "a", messages: Array(Self.messages.prefix(2)), next: "19")
        let second = QueuePage(clientID: "a", messages: [Self.messages[2]], next: "20")
        let run = try await run(
            ["queue", "show", "a", "--limit", "3"], answers: [.ok(first), .ok(second)])
        #expect(
            run.requests.map(\.url) == [
                "http://127.0.0.1:8080/v1/clients/a/queue?limit=3",
                "http://127.0.0.1:8080/v1/clients/a/queue?limit=1&cursor=19",
            ])
        #expect(run.output.split(separator: "\n").count == 4)
        #expect(run.errors == "hermesctl: there are more than these 3. Raise --limit.\n")
    }

    @Test("a page that continues with itself ends the list with an error")
    func endlessPages() async throws {
        let page = QueuePage(clientID: "a", messages: [], next: "7")
        let run = try await run(["queue", "show", "a"], answers: [.ok(page), .ok(page)])
        #expect(run.exitCode == ExitStatus.unexpectedAnswer.rawValue)
    }

    @Test("queue drop asks first, and drops with --yes")
    func drop() async throws {
        let detail = ClientDetail(
            summary: .example("a", queued: 12), subscriptionList: [], sessionBytes: 0,
            willTopic: nil, lastPacketMsAgo: nil, inboundQoS2: 0, unacknowledgedPublishes: 0,
            unsentBytes: 0,
            readingPaused: false, publishesReceived: 0, publishesSent: 0,
            publishesAcknowledged: 0, dropped: [:], lastDisconnectReason: nil)
        let asked = try await run(["queue", "drop", "a"], answers: [.ok(detail)])
        #expect(asked.exitCode == ExitStatus.refused.rawValue)
        #expect(asked.errors.contains("12 messages") && asked.errors.contains("--yes"))
        #expect(asked.requests.map(\.method) == [.get])

        let done = try await run(
            ["queue", "drop", "a", "--yes"],
            answers: [.ok(QueueDropResult(clientID: "a", dropped: 12))])
        #expect(done.output == "Dropped 12 messages that waited for \"a\".\n")
        #expect(done.requests.map(\.method) == [.delete])
        #expect(done.requests.map(\.url) == ["http://127.0.0.1:8080/v1/clients/a/queue"])
    }

    @Test("store accept-loss asks the named broker, and reports the accepted loss")
    func acceptLoss() async throws {
        let path = "/data/journal/damaged-1.segment"
        let done = try await run(
            ["store", "accept-loss", "--url", "http://127.0.0.1:8080"],
            answers: [.ok(AcceptLossResult(accepted: [path]))])
        #expect(done.output == "Accepted: \(path)\n")
        #expect(done.requests.map(\.method) == [.post])
        #expect(done.requests.map(\.url) == ["http://127.0.0.1:8080/v1/store/accept-loss"])

        let nothing = try await run(
            ["store", "accept-loss", "--url", "http://127.0.0.1:8080"],
            answers: [.ok(AcceptLossResult(accepted: []))])
        #expect(nothing.output == "Nothing was lost.\n")
        #expect(nothing.exitCode == 0)
    }

    @Test("store check on a folder without a database is a file that is missing, not damage")
    func checkNothing() async throws {
        let folder = try TemporaryFolder()
        let run = try await run(["store", "check", "--data-directory", folder.path])
        #expect(run.exitCode == ExitStatus.localFile.rawValue)
        #expect(run.errors.contains("hermes.sqlite"))
        #expect(run.requests.isEmpty)
    }

    @Test("backup names the folder from / on, for the broker works in another one")
    func backup() async throws {
        let answer = BackupResult(directory: "/b/one two")
        let done = try await run(["backup", "/b/one two"], answers: [.ok(answer)])
        #expect(done.output == "Copied to \"/b/one two\".\n")
        #expect(
            done.requests.map(\.url) == [
                "http://127.0.0.1:8080/v1/backup?directory=%2Fb%2Fone%20two"
            ])

        let relative = try await run(["backup", "copy"], answers: [.ok(answer)])
        let url = try #require(relative.requests.first?.url)
        #expect(url.contains("?directory=%2F") && url.hasSuffix("%2Fcopy"))

        let refused = try await run(
            ["backup", "/b"],
            answers: [.problem(409, "The folder cannot take a backup", "It is not empty.")])
        #expect(refused.exitCode == ExitStatus.refused.rawValue)
        #expect(
            refused.errors
                == "hermesctl: The folder cannot take a backup: It is not empty. Name another.\n")
    }

    @Test("status shows how the store does")
    func status() async throws {
        var store = StoreStatus()
        store.commits = 1_000
        store.committedBytes = 2_048
        store.failures = 1
        store.longestSyncMicroseconds = 850
        store.longestCommitMicroseconds = 1_250
        store.journalBytes = 16 << 20
        store.waitingSegments = 2
        store.databaseBytes = 65_536
        store.movedMessages = 7
        store.freeBytes = 5 << 30
        store.backupPercent = 40
        store.notReadyReason = "Damage\u{7}"
        store.damage = ["a part is missing"]
        var figures = BrokerFigures()
        figures.version = "0.1.0"
        figures.durability = "sync"
        figures.startedAtMs = now
        var status = BrokerStatus(figures)
        status.memory = nil
        status.store = store
        let run = try await run(["status"], answers: [.ok(status)])
        #expect(
            run.output.hasSuffix(
                """

                ready                no: Damage\\u{7}
                commits              1000 (2.0 KiB), 1 failed
                longest commit       1.2 ms, of it fdatasync 850 us
                journal              16 MiB, 2 segments to be moved
                database             64 KiB, 7 messages moved
                free on the disk     5.0 GiB
                backup               40 %
                damage               a part is missing

                """))
    }
}
