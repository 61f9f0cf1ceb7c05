import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Names of requests")
struct RequestIDTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    private static func name(given: String? = nil, traceParent: String? = nil) -> String {
        RequestID(given: given, traceParent: traceParent, RequestIDs()).text
    }

    @Test("the caller's word comes first, then its trace")
    func given() {
        let parent = "00-\(Self.trace)-00f067aa0ba902b7-01"
        #expect(Self.name(given: "order-7:a.B_9", traceParent: parent) == "order-7:a.B_9")
        #expect(Self.name(traceParent: parent) == Self.trace)
    }

    @Test(
        "what has not the form of a name is passed over",
        arguments: [
            "", "a b", "a\u{1B}[31m", "a\"b", String(repeating: "x", count: 65), "é",
        ])
    func wrong(given: String) {
        #expect(Self.name(given: given, traceParent: "00-\(Self.trace)-1-01").utf8.count == 16)
    }

    @Test(
        "no trace is taken from a traceparent of another form",
        arguments: [
            "", "00", "00-\(trace)", "00-\(trace.uppercased())-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473\u{1B}-00f067aa0ba902b7-01",
        ])
    func wrongTrace(traceParent: String) {
        #expect(Self.name(traceParent: traceParent).utf8.count == 16)
    }

    @Test("made names are not made twice")
    func made() {
        let ids = RequestIDs()
        #expect(Set((0..<10_000).map { _ in ids.make() }).count == 10_000)
    }

    @Test("answers and problems have it")
    func answers() async throws {
        try await TestServer.run { server in
            let good = try server.request(
                "POST", "/v1/publish?topic=t", headers: ["X-Request-ID: abc"], body: [])
            #expect(good.status == 200 && good["X-Request-ID"] == "abc")
            let bad = try server.request("GET", "/v1/none", headers: ["X-Request-ID: no"])
            #expect(bad["X-Request-ID"] == "no")
            #expect(try bad.json(ProblemModel.self).requestID == "no")
            let made = try server.request("GET", "/v1/none")
            #expect(made["X-Request-ID"]?.utf8.count == 16)
            #expect(try made.json(ProblemModel.self).requestID == made["X-Request-ID"])
        }
    }
}
