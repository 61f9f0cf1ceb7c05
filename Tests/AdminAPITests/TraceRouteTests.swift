import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("/v1/trace")
struct TraceRouteTests {
    private static func lines(_ texts: String..., isOver: Bool = false) -> TraceLines {
        TraceLines(
            lines: texts.map { TraceLine(atMs: 1, kind: .event, clientID: "a", text: $0) },
            isOver: isOver)
    }

    @Test("lines are passed on until the trace is over, and then it is ended")
    func lines() async throws {
        let stub = StubBroker {
            $0.traceLines = [
                Self.lines("one", "two"), Self.lines(), Self.lines("three", isOver: true),
            ]
        }
        try await TestServer.run(stub) { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head("GET", "/v1/trace?client_id=a&seconds=5&rate=7&payloads=true"))
            let head = try connection.readHead()
            #expect(head.status == 200)
            #expect(head["Content-Type"] == "application/x-ndjson")
            #expect(
                String(decoding: try connection.readChunks(), as: UTF8.self) == """
                    {"at_ms":1,"client_id":"a","kind":"event","text":"one"}
                    {"at_ms":1,"client_id":"a","kind":"event","text":"two"}
                    {"at_ms":1,"client_id":"a","kind":"event","text":"three"}

                    """)
            #expect(
                server.broker.traces == [
                    TraceRequest(
                        .client("a"), seconds: 5, linesPerSecond: 7, showsPayloads: true)
                ])
            #expect(server.broker.endedTraces == 1)
        }
    }

    @Test("too many traces are refused")
    func tooMany() async throws {
        try await TestServer.run { server in
            let problem = try server.request("GET", "/v1/trace?topic=a%2F%2B").problem()
            #expect(problem.status == 503)
            #expect(problem.detail == "16 traces are under way.")
        }
    }

    @Test(
        "a wrong query is refused by name",
        arguments: [
            ("", "client_id"), ("client_id=a&address=10.0.0.1", "client_id"),
            ("topic=a%23", "topic"), ("address=x", "address"), ("client_id=a&seconds=0", "seconds"),
            ("client_id=a&rate=1001", "rate"), ("client_id=a&payloads=1", "payloads"),
            ("client_id=", "client_id"),
        ])
    func wrong(query: String, field: String) async throws {
        try await TestServer.run { server in
            let problem = try server.request("GET", "/v1/trace?" + query).problem()
            #expect(problem.field == field)
        }
    }
}
