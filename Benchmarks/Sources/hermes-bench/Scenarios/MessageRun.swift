/// Runs a ``LoadPlan`` from the first connection to the report.
struct MessageRun {
    let scenario: String
    let plan: LoadPlan
    let address: BrokerAddress
    let process: BrokerProcess?
    /// `nil` for plain TCP.
    let tls: ClientTLS?
    let isQuiet: Bool

    /// The figures, and the number of lost or misplaced messages and acknowledgements.
    func run() throws(BenchFailure) -> (report: Report, faults: UInt64) {
        var sockets = try ClientSockets(tls: tls)
        var load = MessageLoad(plan, address, process, Progress(scenario, isQuiet: isQuiet))
        while load.phase != .done {
            try sockets.turn(atMost: load.longestWait(now: Clock.nanoseconds()), &load)
        }
        load.progress.clear()
        if plan.subscribersPersist {
            for subscriber in 0..<plan.subscribers { sockets.disconnect(UInt32(subscriber)) }
            for publisher in 0..<plan.publishers {
                sockets.disconnect(UInt32(plan.subscribers + publisher))
            }
            var cleaner = SessionCleaner(
                address: address, patience: plan.patience,
                identifiers: (0..<plan.subscribers).map { load.names.clientID("s", $0) })
            try cleaner.run(&sockets)
        }
        return (report(load), faults(load.counts))
    }

    private func faults(_ counts: LoadCounts) -> UInt64 {
        lost(counts) + counts.duplicates + counts.outOfOrder + counts.foreign
            + counts.strayAcknowledgements + (counts.published - counts.finished)
    }

    private func lost(_ counts: LoadCounts) -> UInt64 {
        let expected = counts.published * UInt64(plan.receiversPerMessage)
        return expected - min(expected, counts.delivered)
    }

    private func report(_ load: borrowing MessageLoad) -> Report {
        var report = Report(scenario, address, process)
        report.parameters = parameters
        guard let begin = load.begin, let end = load.end else { return report }
        let seconds = Double(end.mark.time - begin.mark.time) / 1e9
        let delivered = end.counts.delivered - begin.counts.delivered
        let published = end.counts.published - begin.counts.published
        if process != nil {
            let cpu = Double(end.mark.total - begin.mark.total) / 1e3
            let system = Double(end.mark.system - begin.mark.system) / 1e3
            report.add(
                "broker_cpu_us_per_delivery", "broker CPU per delivered message (us)",
                cpu / Double(max(delivered, 1)), digits: 2)
            report.add(
                "broker_cpu_percent", "broker CPU (% of one core)", cpu / seconds / 1e4, digits: 1)
            report.add(
                "broker_system_percent", "  of it in the kernel (%)", system / max(cpu, 1) * 100,
                digits: 1)
        }
        report.add(
            "deliveries_per_second", "delivered per second", Double(delivered) / seconds, digits: 0)
        report.add(
            "publishes_per_second", "published per second", Double(published) / seconds, digits: 0)
        for (key, label, quantile) in [
            ("latency_p50_us", "latency p50 (us)", 0.5),
            ("latency_p99_us", "latency p99 (us)", 0.99),
            ("latency_p999_us", "latency p99.9 (us)", 0.999),
        ] {
            report.add(key, label, nanoseconds: load.latency.value(atQuantile: quantile))
        }
        report.add("latency_max_us", "latency max (us)", nanoseconds: load.latency.maximum)
        if plan.qos != .atMostOnce {
            addAcknowledgementLatency(load.acknowledgementLatency, &report)
        }
        if case .rate = plan.pace {
            report.add(
                "generator_lag_p99_us", "generator behind its schedule p99 (us)",
                nanoseconds: load.lag.value(atQuantile: 0.99))
        }
        addTotals(load, &report)
        report.add("seconds", "measured (s)", seconds, digits: 1)
        report.add(
            "generator_cpu_percent", "generator CPU (% of one core)",
            Double(end.mark.own - begin.mark.own) / 1e7 / seconds, digits: 1)
        return report
    }

    private func addAcknowledgementLatency(
        _ latency: borrowing LatencyHistogram, _ report: inout Report
    ) {
        let name = plan.qos == .atLeastOnce ? "PUBACK" : "PUBCOMP"
        report.add(
            "acknowledged_p50_us", "until \(name) p50 (us)",
            nanoseconds: latency.value(atQuantile: 0.5))
        report.add(
            "acknowledged_p99_us", "until \(name) p99 (us)",
            nanoseconds: latency.value(atQuantile: 0.99))
        report.add("acknowledged_max_us", "until \(name) max (us)", nanoseconds: latency.maximum)
    }

    /// The messages of the whole run, including warming up and draining.
    private func addTotals(_ load: borrowing MessageLoad, _ report: inout Report) {
        let counts = load.counts
        report.add("published", "published in all", count: counts.published)
        report.add("delivered", "delivered in all", count: counts.delivered)
        report.add("lost", "lost", count: lost(counts))
        report.add("duplicated", "duplicated", count: counts.duplicates)
        report.add("out_of_order", "out of order", count: counts.outOfOrder)
        report.add("foreign", "foreign or damaged", count: counts.foreign)
        report.add(
            "stray_acknowledgements", "acknowledgements for nothing",
            count: counts.strayAcknowledgements)
        report.add(
            "unacknowledged", "never acknowledged to the publisher, or never seen",
            count: counts.published - counts.finished)
    }

    private var parameters: [(String, JSONValue)] {
        var parameters: [(String, JSONValue)] = [
            ("publishers", .integer(Int64(plan.publishers))),
            ("subscribers", .integer(Int64(plan.subscribers))),
            ("qos", .integer(Int64(plan.qos.rawValue))),
            ("payload_bytes", .integer(Int64(plan.payloadBytes))),
        ]
        switch plan.pace {
        case .window(let window): parameters.append(("window", .integer(Int64(window))))
        case .rate(let rate): parameters.append(("rate", .number(rate)))
        }
        switch plan.extent {
        case .time(let warmUp, let measured):
            parameters.append(("warm_up_s", .number(Double(warmUp) / 1e9)))
            parameters.append(("duration_s", .number(Double(measured) / 1e9)))
        case .messages(let perPublisher):
            parameters.append(("messages_per_publisher", .integer(Int64(perPublisher))))
        }
        if plan.acknowledgeAfter > 0 {
            let milliseconds = Int64(plan.acknowledgeAfter / 1_000_000)
            parameters.append(("acknowledge_after_ms", .integer(milliseconds)))
        }
        if plan.subscribersPersist { parameters.append(("persistent", .bool(true))) }
        return parameters
    }
}
