import BrokerAPI
import BrokerTesting
import FoundationEssentials
import Logging
import Structures
import Testing

@testable import AdminAPI

@Suite("GET /metrics")
struct MetricsTests {
    @Test("the text has the format of Prometheus 0.0.4, line by line")
    func text() {
        let text = MetricsText.render(StubBroker.figures)
        #expect(
            text.hasPrefix(
                """
                # HELP hermes_build_info The version of the broker, as a label.
                # TYPE hermes_build_info gauge
                hermes_build_info{version="9.9"} 1

                """))
        #expect(
            text.contains(
                """
                # TYPE hermes_connections_closed_total counter
                hermes_connections_closed_total{reason="disconnect"} 109
                hermes_connections_closed_total{reason="keep_alive"} 110
                # HELP
                """))
        #expect(text.contains("\nprocess_cpu_seconds_total 140.25\n"))
        #expect(text.contains("\nhermes_ready 1\n"))
        #expect(text.contains("\nhermes_store_fdatasync_longest_seconds 0.25\n"))
        #expect(text.contains("\nhermes_store_commit_longest_seconds 0.375\n"))
        #expect(text.contains("\nhermes_store_damage 3\n"))
        for line in [
            #"hermes_tls_certificate_expiry_timestamp_seconds{listener="1",file="/etc/a \"b\".crt"} 1700000001"#,
            #"hermes_tls_certificate_expiry_timestamp_seconds{listener="admin",file="/etc/b.crt"} 1700000003"#,
            #"hermes_tls_revocation_list_expiry_timestamp_seconds{listener="2",file="/etc/c.crl"} 1700000002"#,
            #"hermes_listener_connections{listener="0",address="127.0.0.1:1883"} 304"#,
            #"hermes_listener_connections_opened_total{listener="0",address="127.0.0.1:1883"} 300"#,
            #"hermes_listener_connections_admitted_total{listener="0",address="127.0.0.1:1883"} 305"#,
            #"hermes_listener_connections_refused_total{listener="0",address="127.0.0.1:1883"} 302"#,
            #"hermes_listener_connections_closed_total{listener="0",address="127.0.0.1:1883"} 303"#,
            #"hermes_turn_seconds_bucket{le="5e-05"} 1"#,
            "hermes_turn_longest_seconds 0.0045",
            #"hermes_acknowledge_seconds_bucket{le="0.0001"} 2"#,
            #"hermes_acknowledged_delivery_seconds_bucket{qos="2",le="0.001"} 1"#,
            #"hermes_store_commit_seconds_bucket{le="0.0001"} 3"#,
            #"hermes_store_fdatasync_seconds_bucket{le="5e-05"} 0"#,
            #"hermes_store_fdatasync_seconds_bucket{le="0.0001"} 4"#,
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line)")
        }
        #expect(text.contains(#"hermes_tls_versions_total{version="1.3"} 210"# + "\n"))
        #expect(text.contains("\nprocess_start_time_seconds 1700000000.25\n"))
        #expect(
            text.contains(
                """
                # TYPE hermes_webhook_events_total counter
                hermes_webhook_events_total{result="delivered"} 220
                hermes_webhook_events_total{result="refused"} 221
                # HELP
                """))
        #expect(
            text.contains("\nhermes_webhook_last_success_timestamp_seconds 1700000000.5\n"))
        #expect(
            text.hasSuffix(
                """
                # HELP hermes_stub_bytes A gauge.
                # TYPE hermes_stub_bytes gauge
                hermes_stub_bytes 239
                # HELP hermes_stub_total A counter.
                # TYPE hermes_stub_total counter
                hermes_stub_total 240
                # HELP hermes_stubs_total By kind.
                # TYPE hermes_stubs_total counter
                hermes_stubs_total{kind="taken"} 241

                """))
        #expect(!text.contains("\n\n"))
    }

    @Test("a count keeps its last digit, however large")
    func largeCounts() {
        let text = MetricsText.render(StubBroker.figures)
        #expect(text.contains("hermes_publishes_sent_total{qos=\"2\"} 18446744073709551615\n"))
    }

    @Test("a metric without series is left out")
    func withoutSeries() {
        let text = MetricsText.render(BrokerFigures())
        #expect(!text.contains("hermes_tls_certificate_expiry_timestamp_seconds"))
        #expect(!text.contains("hermes_webhook"))
    }

    @Test("a label's quotes, backslashes and line breaks are escaped")
    func escapes() {
        var figures = BrokerFigures()
        figures.version = "1\"\\\n2"
        let text = MetricsText.render(figures)
        #expect(text.contains(#"hermes_build_info{version="1\"\\\n2"} 1"# + "\n"))
    }

    @Test("every figure of the broker is shown once")
    func everyFigure() throws {
        let text = MetricsText.render(StubBroker.figures)
        for value in [Int](101...152) + [Int](198...199) + [Int](201...215)
            + [Int](239...262) + [Int](302...304) + [Int](311...314) + [Int](401...405)
        where value != 140 {
            let lines = text.split(separator: "\n").filter { $0.hasSuffix(" \(value)") }
            #expect(lines.count == 1, "\(value): \(lines)")
        }
    }

    @Test("names tell the kind, and none comes twice")
    func names() {
        let features = ShardLink().shard.figures.features.map { MetricFamily($0) }
        let families = MetricFamily.all + features
        #expect(Set(families.map(\.name)).count == families.count)
        for family in families {
            #expect(family.name.hasSuffix("_total") == (family.kind == .counter), "\(family.name)")
            #expect(family.name.hasPrefix("hermes_") || family.name.hasPrefix("process_"))
            #expect(family.name.allSatisfy { $0 == "_" || ("a"..."z").contains($0) })
            #expect(family.help.hasSuffix("."))
        }
    }

    @Test("docs/metrics.md describes exactly the metrics that exist, with type and labels")
    func documented() throws {
        var documented: [String] = []
        for line in try Self.documentation() where line.hasPrefix("| `") {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimming { $0 == " " || $0 == "`" }
            }
            guard cells.count == 6 else { continue }
            documented.append("\(cells[1]) \(cells[2]) \(cells[3])")
        }
        let features = ShardLink().shard.figures.features.map { MetricFamily($0) }
        let existing = (MetricFamily.all + features).map { family in
            let labels = family.samples(StubBroker.figures).first?.labels.map(\.name) ?? []
            return "\(family.name) \(family.kind.rawValue) \(labels.joined(separator: ","))"
        }
        #expect(documented.sorted() == existing.sorted())
    }

    @Test("the answer has Prometheus' content type and needs the token")
    func route() async throws {
        try await TestServer.run { server in
            let response = try server.request("GET", "/metrics")
            #expect(response.status == 200)
            #expect(response["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
            // The server adds counters of its own; the stub supplies the broker's figures.
            var expected = StubBroker.figures
            let counters = AdminCounters()
            counters.requests.begin(try TestServer.routeTable().routes)
            expected.admin = counters.figures
            #expect(response.text == MetricsText.render(expected))
            let refused = try server.request("GET", "/metrics", token: nil)
            #expect(refused.status == 401)
        }
    }

    @Test("a refused reload is told until one succeeds")
    func reload() async throws {
        let control = StubConfiguration()
        try await TestServer.run(with: .init { $0.control = control }) { server in
            func isSuccessful() throws -> Bool {
                try server.request("GET", "/metrics").text
                    .contains("\nhermes_config_last_reload_successful 1\n")
            }
            #expect(try isSuccessful())
            control.mistakes.withLock { $0 = ["a.yaml:1: x", "a.yaml:2: y"] }
            let refused = try server.request("POST", "/v1/config/reload").problem()
            #expect(refused.type == "urn:hermes:problem:reload-refused")
            #expect(refused.status == 409)
            #expect(refused.detail == "a.yaml:1: x\na.yaml:2: y")
            #expect(try !isSuccessful())
            let status: BrokerStatus = try server.request("GET", "/v1/status").json()
            #expect(status.reload?.problems == ["a.yaml:1: x", "a.yaml:2: y"])
            control.mistakes.withLock { $0 = [] }
            let done: ConfigurationReload =
                try server.request("POST", "/v1/config/reload").json()
            #expect(done.changed == ["logging.level"])
            #expect(try isSuccessful())
        }
    }

    @Test("requests are counted by route and class, whatever their paths and parameters")
    func requests() async throws {
        try await TestServer.run { server in
            for path in ["/v1/clients/a", "/v1/clients/%00", "/v1/nothing", "/x?y=z"] {
                _ = try server.request("GET", path)
            }
            _ = try server.request("HEAD", "/v1/status")
            _ = try server.request("GET", "/v1/status", token: nil)
            let text = try server.request("GET", "/metrics").text
            for line in [
                #"hermes_http_requests_total{method="GET",route="/v1/clients/{id}",status="4xx"} 2"#,
                #"hermes_http_requests_total{method="other",route="other",status="4xx"} 2"#,
                #"hermes_http_requests_total{method="GET",route="/v1/status",status="2xx"} 1"#,
                #"hermes_http_requests_total{method="GET",route="/v1/status",status="4xx"} 1"#,
                #"hermes_http_requests_total{method="GET",route="/v1/status",status="5xx"} 0"#,
                #"hermes_http_request_seconds_count{method="GET",route="/v1/status"} 2"#,
            ] {
                #expect(text.contains("\n\(line)\n"), "\(line)")
            }
            let series = text.split(separator: "\n").count { $0.hasPrefix("hermes_http_") }
            // Three routes were asked for, and the others have no series.
            #expect(series == 3 * (3 + 17 + 2))
        }
    }

    @Test("a histogram's buckets are cumulative, and a span counts below its bound")
    func histogram() {
        var times = TimeHistogram()
        for microseconds: UInt64 in [0, 499, 500, 999, 1_000, 16_383_999, 16_384_000, 1 << 40] {
            times.add(microseconds: microseconds)
        }
        let counts = times.cumulative
        #expect(counts.count == TimeHistogram.boundCount)
        #expect(counts.prefix(4).map(\.bound) == [0.0005, 0.001, 0.002, 0.004])
        #expect(counts.prefix(4).map(\.count) == [2, 4, 5, 5])
        #expect(counts.last?.bound == 16.384)
        #expect(counts.last?.count == 6)
        #expect(times.count == 8)
    }

    @Test("a broker that is busy is 503, not a scrape without figures")
    func busy() async throws {
        try await TestServer.run(StubBroker { $0.unavailable = .overloaded }) { server in
            let response = try server.request("GET", "/metrics")
            #expect(response.status == 503)
        }
    }

    private static func documentation() throws -> [String] {
        let root = #filePath.split(separator: "/", omittingEmptySubsequences: false)
            .dropLast(3).joined(separator: "/")
        let data = try Data(contentsOf: URL(fileURLWithPath: root + "/docs/metrics.md"))
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

extension Substring {
    fileprivate func trimming(_ isTrimmed: (Character) -> Bool) -> String {
        var text = drop(while: isTrimmed)
        while let last = text.last, isTrimmed(last) { text.removeLast() }
        return String(text)
    }
}
