import BrokerAPI
import FoundationEssentials
import Glibc
import Testing

@testable import OperatorCLI

@Suite("Commands that ask the broker")
struct BrokerCommandTests {
    private static let status: BrokerStatus = {
        var figures = BrokerFigures()
        figures.version = "0.1.0"
        figures.durability = "none"
        figures.startedAtMs = now - 200_000
        figures.uptimeSeconds = 200
        figures.connections = 2
        figures.connectionsPending = 1
        figures.connectionsOpened = 10
        figures.connectionsRefused = 3
        figures.sessions = 4
        figures.persistentSessions = 2
        figures.sessionBytes = 1_536
        figures.sessionBytesLimit = 4_194_304
        figures.subscriptions = 2
        figures.sharedSubscriptions = 3
        figures.retained = 6
        figures.queued = 7
        figures.queuedBytes = 2_048
        figures.inFlight = 8
        figures.publishesReceived.atLeastOnce = 100
        figures.publishesSent.atMostOnce = 200
        figures.bytesReceived = 10_240
        figures.bytesSent = 20_480
        figures.dropped = [.init("queue_full", 2), .init("offline", 1)]
        figures.protocolViolations = 9
        figures.limitsReached = [
            .init("queue_messages", 2), .init("max_packet", 0), .init("max_in_flight", 5),
        ]
        var status = BrokerStatus(figures, listeners: ["127.0.0.1:1883", "[::1]:1883"])
        status.memory = nil
        return status
    }()

    @Test("status shows the broker at a glance")
    func status() async throws {
        let run = try await run(["status"], answers: [.ok(Self.status)])
        #expect(
            run.output == """
                version              0.1.0
                started              2025-01-31T07:56:40Z (3m 20s ago)
                durability           none
                listeners            127.0.0.1:1883, [::1]:1883

                connections          2 (1 not yet admitted)
                since the start      10 accepted, 3 refused
                protocol violations  9

                sessions             4 (2 persistent)
                their memory         1.5 KiB of 4.0 MiB
                subscriptions        5
                retained messages    6
                queued               7 (2.0 KiB)
                in flight            8

                received             100 messages, 10 KiB
                sent                 200 messages, 20 KiB
                dropped              offline 1, queue_full 2
                limits reached       max_in_flight 5, queue_messages 2

                """)
        #expect(run.exitCode == 0)
        #expect(run.errors.isEmpty)
        #expect(
            run.requests == [
                AdminRequest(
                    method: .get, url: "http://127.0.0.1:8080/v1/status", token: "secret",
                    body: nil)
            ])
    }

    @Test(
        "status shows a webhook, its last success, and its failure",
        arguments: [
            (WebhookFigures(events: [:]), "0 events"),
            (
                WebhookFigures(
                    events: ["delivered": 7, "refused": 3], lastSuccessAtMs: now - 5_000),
                "7 events, the last 2025-01-31T07:59:55Z (5s ago)"
            ),
            (
                WebhookFigures(events: ["delivered": 7], failure: "status 500"),
                "7 events, failing: status 500"
            ),
        ])
    func webhook(figures: WebhookFigures, text: String) async throws {
        var status = Self.status
        status.webhook = figures
        let run = try await run(["status"], answers: [.ok(status)])
        #expect(run.output.hasSuffix("\nwebhook              \(text)\n"))
    }

    @Test("--json prints the broker's own document, with fields this program does not know")
    func statusJSON() async throws {
        let known = String(decoding: try JSONEncoder().encode(Self.status), as: UTF8.self)
        let json = "{\"newer\":1," + known.dropFirst()
        let answer = AdminResponse(
            status: 200, mediaType: "application/json", body: Array(json.utf8))
        let run = try await run(["status", "--json"], answers: [answer])
        #expect(run.output == json + "\n")
    }

    @Test("clients list shows one line per client and escapes hostile identifiers")
    func list() async throws {
        let page = ClientPage(
            clients: [
                .example("a\u{1B}[31m"),
                .example("phone-1", userName: "anna", connected: false, queued: 12),
            ], next: nil)
        let run = try await run(["clients", "list"], answers: [.ok(page)])
        #expect(
            run.output == """
                CLIENT       USER  STATE       SINCE  ADDRESS          MQTT   SESSION     SUBS  IN FLIGHT  QUEUED  LOST
                a\\u{1B}[31m  -     connected  3m 20s  127.0.0.1:50000  3.1.1  persistent     1          2       0     0
                phone-1      anna  offline    3m 20s  -                3.1.1  persistent     1          2      12     0

                """)
        #expect(run.exitCode == 0)
    }

    @Test("clients list cuts cells on a terminal only")
    func listOnTerminal() async throws {
        let long = String(repeating: "x", count: 60)
        let page = ClientPage(clients: [.example(long)], next: nil)
        let wide = try await run(["clients", "list"], answers: [.ok(page)])
        #expect(wide.output.contains(long))
        let cut = try await run(["clients", "list"], answers: [.ok(page)], columns: 100)
        #expect(cut.output.split(separator: "\n").allSatisfy { $0.count <= 100 })
        #expect(cut.output.contains("x…"))
    }

    @Test("on 80 columns clients list leaves columns out and shows usual names whole")
    func listOnNarrowTerminal() async throws {
        let page = ClientPage(
            clients: [.example("courier-phone-4711-2025"), .example("b", userName: "anna")],
            next: nil)
        let run = try await run(["clients", "list"], answers: [.ok(page)], columns: 80)
        let lines = run.output.split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= 80 }, "\(run.output)")
        #expect(lines[1].hasPrefix("courier-phone-4711-2025  "))
        for title in ["STATE", "SINCE", "ADDRESS", "QUEUED", "LOST"] {
            #expect(lines[0].contains(title))
        }
        #expect(!lines[0].contains("MQTT") && !lines[0].contains("SESSION"))
    }

    @Test("config reload says what has changed, and fails with what is wrong")
    func reload() async throws {
        let changes = ConfigurationReload(changed: ["logging.level"], atNextStart: ["admin.port"])
        let done = try await run(["config", "reload"], answers: [.ok(changes)])
        #expect(done.output == "Changed: logging.level\nAt the next start: admin.port\n")
        #expect(done.requests.map(\.method) == [.post])
        #expect(done.requests.first?.url.hasSuffix("/v1/config/reload") == true)
        let refused = try await run(
            ["config", "reload"],
            answers: [.problem(409, "The configuration was refused", "a.yaml:1: x")])
        #expect(refused.exitCode == 1)
        #expect(refused.errors.contains("a.yaml:1: x"))
    }

    @Test("the socket that the unit gives the broker is asked, if it is there")
    func socketOfTheUnit() throws {
        let options = try ConnectionOptions.parse([])
        let missing = ["HERMES_ADMIN_UNIX_SOCKET": "/nonexistent/admin.sock"]
        #expect(try options.endpoint(missing) == .standard)
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/s"
        let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
        let there = ["HERMES_ADMIN_UNIX_SOCKET": path]
        #expect(try options.endpoint(there) == .unixSocket(path: path))
        let named = try ConnectionOptions.parse(["--url", "http://127.0.0.1:1"])
        #expect(try named.endpoint(there) != .unixSocket(path: path))
    }

    @Test("clients list follows cursors up to its limit, and says when there is more")
    func listPages() async throws {
        let first = ClientPage(clients: [.example("a"), .example("b")], next: "b/1")
        let second = ClientPage(clients: [.example("c")], next: "c")
        let run = try await run(
            ["clients", "list", "--limit", "3", "--connected", "--prefix", "p/", "--user", "a b"],
            answers: [.ok(first), .ok(second)])
        let filter = "connected=true&prefix=p%2F&user_name=a%20b"
        #expect(
            run.requests.map(\.url) == [
                "http://127.0.0.1:8080/v1/clients?limit=3&\(filter)",
                "http://127.0.0.1:8080/v1/clients?limit=1&\(filter)&cursor=b%2F1",
            ])
        #expect(run.output.split(separator: "\n").count == 4)
        #expect(run.errors == "hermesctl: there are more than these 3. Raise --limit.\n")
        #expect(run.exitCode == 0)
    }

    @Test("clients list asks for pages of a thousand")
    func listPageSize() async throws {
        let page = ClientPage(clients: [], next: nil)
        let run = try await run(
            ["clients", "list", "--limit", "5000", "--offline"], answers: [.ok(page)])
        #expect(
            run.requests.map(\.url) == [
                "http://127.0.0.1:8080/v1/clients?limit=1000&connected=false"
            ])
        #expect(run.output.hasPrefix("CLIENT"))
    }

    @Test("clients list --json is one document over all pages, with the cursor that continues it")
    func listJSON() async throws {
        let first = ClientPage(clients: [.example("a")], next: "x")
        let second = ClientPage(clients: [.example("b")], next: "y")
        let run = try await run(
            ["clients", "list", "--limit", "2", "--json"], answers: [.ok(first), .ok(second)])
        let page = try JSONDecoder().decode(ClientPage.self, from: Data(run.output.utf8))
        #expect(page == ClientPage(clients: [.example("a"), .example("b")], next: "y"))
        #expect(run.errors.isEmpty)
    }

    @Test("a page that leads to itself ends the list with an error")
    func endlessPages() async throws {
        let page = ClientPage(clients: [], next: "again")
        let run = try await run(["clients", "list"], answers: [.ok(page), .ok(page)])
        #expect(run.exitCode == ExitStatus.unexpectedAnswer.rawValue)
        #expect(run.requests.count == 2)
    }

    @Test("clients show says how many subscriptions it leaves out, and where they are")
    func showMany() async throws {
        var detail = ClientDetail(
            summary: .example("phone\u{1B}"),
            subscriptionList: [ClientSubscription(filter: "a", qos: 1)], sessionBytes: 640,
            willTopic: nil, lastPacketMsAgo: nil, inboundQoS2: 0, unacknowledgedPublishes: 0,
            unsentBytes: 0, readingPaused: false, publishesReceived: 0, publishesSent: 0,
            publishesAcknowledged: 0, dropped: [:], lastDisconnectReason: nil)
        detail.summary.subscriptions = 100_000
        let run = try await run(["clients", "show", "x"], answers: [.ok(detail)])
        #expect(
            run.output.hasSuffix(
                "and 99999 more: hermesctl subscriptions --client \"phone\\u{1B}\"\n"))
    }

    @Test("clients show tells everything about one client")
    func show() async throws {
        let detail = ClientDetail(
            summary: .example("phone/1", userName: "anna", queued: 3),
            subscriptionList: [
                ClientSubscription(filter: "orders/7/#", qos: 1),
                ClientSubscription(filter: "a\tb", qos: 0),
            ],
            sessionBytes: 640, willTopic: "gone/\u{7}", lastPacketMsAgo: 5_400, inboundQoS2: 1,
            unacknowledgedPublishes: 2, unsentBytes: 1_024, readingPaused: false,
            publishesReceived: 10, publishesSent: 20, publishesAcknowledged: 18,
            dropped: ["queue_full": 4], lastDisconnectReason: "keep alive ran out")
        let run = try await run(["clients", "show", "phone/1"], answers: [.ok(detail)])
        #expect(
            run.output == """
                client                        phone/1
                user                          anna
                state                         connected
                since                         2025-01-31T07:56:40Z (3m 20s ago)
                address                       127.0.0.1:50000
                MQTT                          3.1.1
                session                       persistent
                keep alive                    120 s
                last packet                   5s ago
                will topic                    gone/\\u{7}
                last disconnection            keep alive ran out

                subscriptions                 1
                memory of the session         640 B
                in flight                     2
                queued                        3 (300 B)
                unsent                        1.0 KiB
                QoS 2 not released            1
                awaiting our acknowledgement  2
                reading paused                no

                messages received             10
                messages sent                 20
                messages acknowledged         18
                messages dropped              queue_full 4

                SUBSCRIPTION  QOS
                orders/7/#      1
                a\\tb            0

                """)
        #expect(run.requests.map(\.url) == ["http://127.0.0.1:8080/v1/clients/phone%2F1"])
    }

    @Test("clients kick reports the result")
    func kick() async throws {
        let done = try await run(
            ["clients", "kick", "--", "-x"],
            answers: [AdminResponse(status: 204, mediaType: nil, body: [])])
        #expect(done.output == "Disconnected \"-x\".\n")
        #expect(done.requests.map(\.method) == [.delete])
        #expect(done.requests.map(\.url) == ["http://127.0.0.1:8080/v1/clients/-x"])

        let away = try await run(
            ["clients", "kick", "a"],
            answers: [.ok(DisconnectResult(clientID: "a", disconnected: false))])
        #expect(away.output == "\"a\" was not connected.\n")
        #expect(away.exitCode == 0)

        let unknown = try await run(
            ["clients", "kick", "a"],
            answers: [.problem(404, "There is no such client", "Nobody is called \"a\".")])
        #expect(unknown.exitCode == ExitStatus.refused.rawValue)
        #expect(
            unknown.errors
                == "hermesctl: There is no such client: Nobody is called \"a\". Name another.\n")
    }

    private static let published = PublishResult(
        messageID: "01J", durability: "none",
        counts: PublishCounts(matched: 3, online: 2, queued: 1, dropped: 0),
        duplicate: false)

    @Test("publish sends the message's bytes and shows the counts")
    func publish() async throws {
        let run = try await run(
            ["publish", "-t", "a/b", "-m", "-hello", "-q", "1", "-r"],
            answers: [.ok(Self.published)])
        #expect(
            run.output == """
                message     01J
                durability  none
                matched     3
                online      2
                queued      1
                dropped     0

                """)
        #expect(
            run.requests == [
                AdminRequest(
                    method: .post,
                    url: "http://127.0.0.1:8080/v1/publish?topic=a%2Fb&qos=1&retain=true",
                    token: "secret", body: Array("-hello".utf8))
            ])
    }

    @Test("publish passes the message's name and its time to live on")
    func publishNameAndExpiry() async throws {
        for (text, seconds) in [("90s", 90), ("30m", 1_800), ("12h", 43_200), ("7d", 604_800)] {
            let run = try await run(
                ["publish", "-t", "a", "-m", "", "--message-id", "o/7", "--expires", text],
                answers: [.ok(Self.published)])
            #expect(
                run.requests.map(\.url) == [
                    "http://127.0.0.1:8080/v1/publish?topic=a&retain=false"
                        + "&message_id=o%2F7&expires_in_s=\(seconds)"
                ])
        }
        for text in ["0s", "60", "1w", "49711d", "-1s"] {
            let run = try await run(["publish", "-t", "a", "-m", "", "--expires=\(text)"])
            #expect(run.exitCode == ExitStatus.usage.rawValue)
            #expect(run.errors.contains("such as 30m"))
            #expect(run.requests.isEmpty)
        }
    }

    @Test("publish takes the message from standard input or from a file, byte for byte")
    func publishSources() async throws {
        let input = try await run(
            ["publish", "-t", "a"], answers: [.ok(Self.published)], input: "x\u{0}y\n")
        #expect(input.requests.map(\.body) == [Array("x\u{0}y\n".utf8)])

        let folder = try TemporaryFolder()
        let path = try folder.write("from file\n", to: "message")
        let file = try await run(
            ["publish", "-t", "a", "-f", path], answers: [.ok(Self.published)])
        #expect(file.requests.map(\.body) == [Array("from file\n".utf8)])

        let empty = try await run(
            ["publish", "-t", "a", "-m", "", "-r"], answers: [.ok(Self.published)])
        #expect(empty.requests.map(\.body) == [[]])
    }

    @Test("publish names a file that cannot be read, and sends nothing")
    func publishMissingFile() async throws {
        let run = try await run(["publish", "-t", "a", "-f", "/nonexistent/x"])
        #expect(run.exitCode == ExitStatus.localFile.rawValue)
        #expect(
            run.errors == """
                hermesctl: cannot open "/nonexistent/x": no such file or directory (ENOENT). \
                Check the path, or create what is missing.

                """)
        #expect(run.requests.isEmpty)
    }
}
