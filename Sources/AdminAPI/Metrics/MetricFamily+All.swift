import BrokerAPI

extension MetricFamily {
    /// All metrics, in the order of output; docs/metrics.md describes them.
    static let all: [MetricFamily] =
        software + connections + listeners + sessions + traffic + limits + bans + waiting + times
        + tls + store + admin + webhook + loginService + reports + wakes + process

    private static let software: [MetricFamily] = [
        .information(
            "hermes_build_info", "version", "The version of the broker, as a label.",
            { $0.version }),
        .information(
            "hermes_durability_info", "durability",
            "When a message counts as stored, as a label: none, interval or sync.",
            { $0.durability }),
        .gauge("hermes_uptime_seconds", "Time since the start.") { Int($0.uptimeSeconds) },
        .gauge(
            "hermes_config_last_reload_successful",
            "0 after a reload that was refused, until one succeeds; 1 otherwise."
        ) { $0.admin.lastReload?.problems.isEmpty == false ? 0 : 1 },
        .real(
            "hermes_config_last_reload_timestamp_seconds", .gauge,
            "When the configuration was last read again, in UNIX time; 0 for never."
        ) { Double($0.admin.lastReload?.atMs ?? 0) / 1e3 },
    ]

    private static let connections: [MetricFamily] = [
        .gauge("hermes_connections", "Clients that are connected.") { $0.connections },
        .gauge(
            "hermes_connections_pending",
            "Connections that wait for CONNECT, the password check or the store."
        ) { $0.connectionsPending },
        .gauge("hermes_connections_peak", "The most clients that were connected at a time.") {
            $0.connectionsPeak
        },
        .gauge("hermes_connections_limit", "Connections that are taken at a time.") {
            $0.connectionsLimit
        },
        .counter("hermes_connections_opened_total", "Network connections taken.") {
            $0.connectionsOpened
        },
        .counter("hermes_connections_admitted_total", "CONNECTs answered with code 0.") {
            $0.connectionsAdmitted
        },
        .counter("hermes_connections_refused_total", "CONNECTs answered with another code.") {
            $0.connectionsRefused
        },
        .counters(
            "hermes_connections_closed_total", by: "reason", "Network connections that ended.",
            { $0.connectionsClosed }),
        .counter(
            "hermes_protocol_violations_total", "Connections closed for breaking a rule of MQTT.",
            { $0.protocolViolations }),
        .counter(
            "hermes_take_overs_delayed_total",
            "Take-overs that had to wait, because two peers threw each other out again and again.",
            { $0.takeOversDelayed }),
    ]

    private static let sessions: [MetricFamily] = [
        .gauge("hermes_sessions", "Sessions, with or without a connection.") { $0.sessions },
        .gauge("hermes_sessions_persistent", "Sessions of clients with clean session 0.") {
            $0.persistentSessions
        },
        .counter("hermes_sessions_expired_total", "Sessions removed after their time offline.") {
            $0.sessionsExpired
        },
        .gauge(
            "hermes_session_bytes", "What sessions count for limits.session_bytes."
        ) { $0.sessionBytes },
        .gauge("hermes_session_bytes_limit", "That limit; 0 without one.") {
            $0.sessionBytesLimit ?? 0
        },
        .gauge("hermes_subscriptions", "Subscriptions that are not shared.") { $0.subscriptions },
        .gauge("hermes_shared_subscriptions", "Memberships in shared subscriptions.") {
            $0.sharedSubscriptions
        },
        .gauge("hermes_retained_messages", "Retained messages of clients.") { $0.retained },
        .gauge("hermes_retained_bytes", "Their PUBLISH packets together.") { $0.retainedBytes },
    ]

    private static let traffic: [MetricFamily] = [
        .counter("hermes_packets_received_total", "MQTT Control Packets from clients.") {
            $0.packetsReceived
        },
        .counter("hermes_packets_sent_total", "MQTT Control Packets to clients.") {
            $0.packetsSent
        },
        .byQoS(
            "hermes_publishes_received_total", "PUBLISH packets from clients, and HTTP publishes.",
            { $0.publishesReceived }),
        .byQoS(
            "hermes_publishes_sent_total", "PUBLISH packets to clients, repeats included.",
            { $0.publishesSent }),
        .counter("hermes_publish_received_bytes_total", "Payloads of received publishes.") {
            $0.publishBytesReceived
        },
        .counter("hermes_publish_sent_bytes_total", "Payloads of sent publishes.") {
            $0.publishBytesSent
        },
        .counter("hermes_received_bytes_total", "Bytes read from MQTT connections.") {
            $0.bytesReceived
        },
        .counter("hermes_sent_bytes_total", "Bytes written to MQTT connections.") {
            $0.bytesSent
        },
    ]

    private static let limits: [MetricFamily] = [
        .counters(
            "hermes_messages_dropped_total", by: "reason",
            "Messages given up, one for each receiver that lost it.", { $0.dropped }),
        .counters(
            "hermes_limit_reached_total", by: "limit",
            "How often a limit of the configuration was met, by its key below limits.",
            { $0.limitsReached }),
        .counters(
            "hermes_acl_refusals_total", by: "action",
            "What the access rules refused, by what was attempted.", { $0.accessRefusals }),
        .gauge(
            "hermes_memory_used_bytes", "Resident memory that the process shares with nobody."
        ) { $0.memory.usedBytes },
        .gauge(
            "hermes_memory_limit_bytes",
            "Above it connections are given up; 0 without a limit."
        ) { $0.memory.limitBytes ?? 0 },
        .gauge(
            "hermes_memory_pressure",
            "What is given up for want of memory: 0 nothing, 1 newcomers, 2 publishers, 3 slow readers."
        ) { $0.memoryPressure },
        .gauge(
            "hermes_memory_keeps_nothing_new",
            "1 while nothing can be freed: no new sessions, subscriptions and retained messages."
        ) { $0.memory.keepsNothingNew ? 1 : 0 },
        .gauge(
            "hermes_unfinished_packet_bytes",
            "Buffers of unfinished packets, of all connections together."
        ) { $0.memory.unfinishedBytes },
        .gauge("hermes_publishers_paused", "Clients that are not read at present.") {
            $0.publishersPaused
        },
    ]

    private static let waiting: [MetricFamily] = [
        .gauge("hermes_queued_messages", "Messages that wait for their receivers.") { $0.queued },
        .gauge("hermes_queued_bytes", "Their PUBLISH packets together.") { $0.queuedBytes },
        .gauge("hermes_in_flight_messages", "Messages sent and not yet acknowledged.") {
            $0.inFlight
        },
        .times(
            "hermes_delivery_seconds",
            "From the arrival of a message to its receiver's last acknowledgement, by QoS of the delivery."
        ) {
            [
                Histogram(labels: [("qos", "1")], $0.deliveriesAtLeastOnce),
                Histogram(labels: [("qos", "2")], $0.deliveriesExactlyOnce),
            ]
        },
        .gauge("hermes_authentications_waiting", "Password checks that have not begun.") {
            $0.authenticationsWaiting
        },
        .gauge("hermes_commits_pending", "Groups of writes that the store has not confirmed.") {
            $0.commitsPending
        },
        .gauge("hermes_retained_walks", "Sessions that are being sent retained messages.") {
            $0.retainedWalks
        },
    ]

    private static let tls: [MetricFamily] = [
        .gauge("hermes_tls_connections", "Connections that speak TLS.") { $0.tlsConnections },
        .gauge("hermes_tls_handshakes_under_way", "TLS handshakes that are not over.") {
            $0.tlsHandshakesUnderWay
        },
        .counters(
            "hermes_tls_handshakes_total", by: "kind", "TLS handshakes that succeeded.",
            { $0.tlsHandshakes }),
        .counters(
            "hermes_tls_handshake_failures_total", by: "reason",
            "TLS handshakes that came to nothing.", { $0.tlsHandshakeFailures }),
        .counters(
            "hermes_tls_versions_total", by: "version",
            "TLS handshakes that succeeded, by the version agreed on.", { $0.tlsVersions }),
    ]

    /// Named as by Prometheus' client libraries, which dashboards expect.
    private static let store: [MetricFamily] = [
        .gauge(
            "hermes_ready",
            "1 while GET /readyz says so: everything is acknowledged durably, and clients may connect."
        ) { $0.store.isReady && !$0.isDraining ? 1 : 0 },
        .counter("hermes_store_commits_total", "Groups of writes made durable.") {
            $0.store.commits
        },
        .counter("hermes_store_committed_bytes_total", "Their bytes.") { $0.store.committedBytes },
        .counter("hermes_store_failures_total", "Failed attempts to write or synchronise.") {
            $0.store.failures
        },
        .real(
            "hermes_store_fdatasync_longest_seconds", .gauge,
            "The longest fdatasync of the last minute."
        ) { Double($0.store.longestSyncMicroseconds) / 1e6 },
        .real(
            "hermes_store_commit_longest_seconds", .gauge,
            "The longest commit of the last minute, whatever held it up."
        ) { Double($0.store.longestCommitMicroseconds) / 1e6 },
        .counter(
            "hermes_store_moved_segments_total", "Journal segments moved to the database."
        ) { $0.store.movedSegments },
        .counter(
            "hermes_store_moved_messages_total", "Queued messages that outlived their segment."
        ) { $0.store.movedMessages },
        .counter(
            "hermes_store_corrected_pages_total",
            "Reads of the database that found flipped bits, which a checksum corrected."
        ) { $0.store.correctedPages },
        .gauge("hermes_store_waiting_segments", "Journal segments that wait to be moved.") {
            $0.store.waitingSegments
        },
        .gauge("hermes_store_journal_bytes", "Files of the journal.") { $0.store.journalBytes },
        .gauge(
            "hermes_store_database_bytes", "The database with its log, after the last move."
        ) { $0.store.databaseBytes },
        .gauge(
            "hermes_store_free_bytes", "Free on the file system of the data directory."
        ) { Int(clamping: $0.store.freeBytes) },
        .gauge(
            "hermes_store_damage", "Damaged files and lost parts that nobody has accepted."
        ) { $0.store.damage.count },
    ]

    private static let admin: [MetricFamily] = [
        MetricFamily(
            name: "hermes_http_requests_total", kind: .counter,
            help: "Requests to the HTTP API that were answered, by route and class of the status."
        ) { figures in
            asked(figures).flatMap { requests in
                requests.answers.map { count in
                    Sample(
                        labels: labels(of: requests) + [("status", count.label)],
                        value: .integer(count.value))
                }
            }
        },
        .times(
            "hermes_http_request_seconds",
            "From the head of a request to its answer, which may follow in parts."
        ) { asked($0).map { Histogram(labels: labels(of: $0), $0.times) } },
        .counters(
            "hermes_admin_refused_total", by: "reason",
            "Requests to the HTTP API that were not let in: no token, an unknown or an expired one, one without the scope, or too many wrong ones from the address.",
            { $0.admin.refused }),
        .counter(
            "hermes_admin_connections_refused_total",
            "Connections to the HTTP API answered 503 or closed at once, because too many had requests under way.",
            { $0.admin.connectionsRefused }),
        .counter(
            "hermes_admin_connections_displaced_total",
            "Connections to the HTTP API closed to make room for others, because too many were open.",
            { $0.admin.connectionsDisplaced }),
    ]

    /// The routes that were asked for since the start. There are many, of which a broker uses few, and
    /// each has some twenty series.
    private static func asked(_ figures: BrokerFigures) -> [AdminFigures.Requests] {
        figures.admin.requests.filter { requests in
            requests.times.count > 0 || requests.answers.contains { $0.value > 0 }
        }
    }

    private static func labels(
        of requests: AdminFigures.Requests
    ) -> [(name: String, value: String)] {
        [("method", requests.method), ("route", requests.route)]
    }

    private static let process: [MetricFamily] = [
        .real("process_cpu_seconds_total", .counter, "User and system time of all threads.") {
            $0.process.cpuSeconds
        },
        .gauge("process_resident_memory_bytes", "Resident memory.") { $0.process.residentBytes },
        .gauge("process_open_fds", "Open descriptors.") { $0.process.openDescriptors },
        .gauge("process_max_fds", "Descriptors that may be open.") {
            $0.process.descriptorLimit
        },
        .real("process_start_time_seconds", .gauge, "When the broker started, in UNIX time.") {
            Double($0.startedAtMs) / 1_000
        },
    ]
}
