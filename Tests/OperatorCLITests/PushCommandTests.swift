import BrokerAPI
import Testing

@testable import OperatorCLI

@Suite("hermesctl push and pushes")
struct PushCommandTests {
    private static let accepted = PushAccepted(
        pushID: "sale-1", durability: "sync", scheduled: ScheduledTime(deliverAtMs: now + 90_000))

    private static func status(_ state: PushStatus.State, reached: Int = 40) -> PushStatus {
        PushStatus(
            pushID: "sale-1", topic: "a\u{1B}", qos: 1, state: state, createdAtMs: now - 20_000,
            deliverAtMs: now - 10_000, spreadSeconds: 60,
            endedAtMs: state == .done ? now - 2_000 : nil, matched: 100, reached: reached,
            online: 10, queued: 25, dropped: 1, withoutSession: 3, denied: 1)
    }

    @Test("a push to tags")
    func tags() async throws {
        let run = try await run(
            [
                "push", "-t", "news", "-m", "hi", "--any", "a", "--any", "b", "--all", "c",
                "--none", "d", "-q", "2", "--in", "90s", "--spread", "1h", "--expires", "2d",
                "--message-id", "sale-1", "--key", "k", "--no-receipts",
            ], answers: [.ok(Self.accepted)])
        #expect(
            run.output == """
                push        sale-1
                durability  sync
                begins      in 1m 30s

                """)
        let request = try #require(run.requests.first)
        #expect(request.method == .post)
        #expect(request.url == "http://127.0.0.1:8080/v1/pushes")
        #expect(request.idempotencyKey == "k")
        #expect(request.contentType == "application/json")
        #expect(
            String(decoding: request.body ?? [], as: UTF8.self)
                == #"{"deliver_in_s":90,"dry_run":false,"#
                + #""message":{"expires_in_s":172800,"message_id":"sale-1","#
                + #""payload_base64":"aGk=","qos":2,"receipts":false,"topic":"news"},"#
                + #""spread_s":3600,"#
                + #""to":{"tags":{"all":["c"],"any":["a","b"],"none":["d"]}}}"# + "\n")
    }

    @Test("a push to clients takes its message from standard input")
    func clients() async throws {
        let duplicate = PushAccepted(pushID: "x", durability: "none", duplicate: true)
        let run = try await run(
            [
                "push", "--topic", "news", "--client", "a", "--client", "-b", "--at",
                "2026-11-23T09:00:00Z",
            ], answers: [.ok(duplicate)], input: "hi")
        #expect(run.output == "push        x (sent before)\ndurability  none\n")
        #expect(
            String(decoding: run.requests.first?.body ?? [], as: UTF8.self)
                == #"{"deliver_at":"2026-11-23T09:00:00Z","dry_run":false,"#
                + #""message":{"payload_base64":"aGk=","qos":1,"topic":"news"},"spread_s":0,"#
                + #""to":{"clients":["a","-b"]}}"# + "\n")
    }

    @Test("a dry run shows whom it would reach")
    func dryRun() async throws {
        let preview = PushPreview(matched: 9, online: 2, offline: 4, withoutSession: 3)
        let run = try await run(
            ["push", "-t", "news", "-m", "", "--any", "a", "--dry-run"], answers: [.ok(preview)])
        #expect(
            run.output == """
                matched          9
                online           2
                offline          4
                without session  3

                """)
        let body = String(decoding: run.requests.first?.body ?? [], as: UTF8.self)
        #expect(body.contains(#""dry_run":true"#))
    }

    @Test("pushes are listed")
    func list() async throws {
        let run = try await run(
            ["pushes", "list"], answers: [.ok(PushPage(pushes: [Self.status(.sending)]))])
        #expect(
            run.output == """
                STATE     BEGINS  CLIENTS  REACHED  PUSH    TOPIC
                sending  10s ago      100       40  sale-1  a\\u{1B}

                """)
        #expect(run.requests.map(\.url) == ["http://127.0.0.1:8080/v1/pushes?limit=100"])
    }

    @Test("a push is shown with its counts")
    func show() async throws {
        var status = Self.status(.done, reached: 100)
        var receipts = MessageReceipt.Counts()
        receipts.receivers = 35
        receipts.pending = 30
        receipts.acknowledged = 5
        status.receipts = receipts
        let run = try await run(["pushes", "show", "sale-1"], answers: [.ok(status)])
        #expect(
            run.output == """
                push             sale-1
                topic            a\\u{1B}
                qos              1
                state            done
                begins           10s ago
                spread over      1m
                ended            2s ago

                clients          100
                reached          100
                online           10
                queued           25
                dropped          1
                without session  3
                denied           1

                pending          30
                acknowledged     5
                sent (QoS 0)     0
                expired          0
                dropped later    0

                """)
    }

    @Test(
        "a push is cancelled, unless it was done",
        arguments: [
            (PushStatus.State.cancelled, "Cancelled \"sale-1\"; 40 clients had been reached.\n"),
            (.done, "The push \"sale-1\" was done already; 40 clients had been reached.\n"),
        ] as [(PushStatus.State, String)])
    func cancel(state: PushStatus.State, text: String) async throws {
        let run = try await run(["pushes", "cancel", "sale-1"], answers: [.ok(Self.status(state))])
        #expect(run.output == text)
        #expect(run.requests.map(\.method) == [.delete])
    }

    @Test(
        "wrong arguments are refused before a request",
        arguments: [
            ["push", "-m", "x", "--client", "a"], ["push", "-t", "t", "-m", "x"],
            ["push", "-t", "t", "-m", "x", "--none", "a"],
            ["push", "-t", "t", "-m", "x", "--client", "a", "--any", "b"],
            ["push", "-t", "t", "-m", "x", "--client", "a", "-q", "3"],
            ["push", "-t", "t", "-m", "x", "--client", "a", "--spread", "2d"],
            ["push", "-t", "t", "-m", "x", "--client", "a", "--in", "60"],
            ["push", "-t", "t", "-m", "x", "--client", "a", "--in", "1s", "--at", "x"],
            ["push", "-t", "t", "-m", "x", "-f", "y", "--client", "a"],
            ["push", "-t", "t", "-m", "x", "--client", "a", "--key", "a b"],
            ["pushes", "list", "--limit", "0"], ["pushes", "show"], ["pushes", "cancel", ""],
        ])
    func wrong(arguments: [String]) async throws {
        let run = try await run(arguments)
        #expect(run.exitCode == 64)
        #expect(run.requests.isEmpty)
    }

    @Test("the broker's refusal is shown, with its fix")
    func refused() async throws {
        let problem = try AdminResponse.problem(507, "No more pushes can be stored", "Full.")
        let run = try await run(
            ["push", "-t", "t", "-m", "x", "--client", "a"], answers: [problem])
        #expect(run.exitCode == 1)
        #expect(run.errors.contains("Full. Name another."))
    }
}
