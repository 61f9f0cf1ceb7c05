import MQTTCodec

/// Messages for offline clients: subscribe and disconnect, fill, reconnect and drain.
struct OfflineRun {
    /// The steps to take; one run may drain the messages of another.
    enum Part { case fill, drain, both }

    /// Two and a half seconds without work: the broker gives memory back after a pause, and may rest between two batches of what it moves.
    private static var calmIntervals: Int { 50 }
    private static var longestCalming: UInt64 { 120_000_000_000 }

    let plan: OfflinePlan
    let part: Part
    let names: RunNames
    let address: BrokerAddress
    let process: BrokerProcess
    let dataDirectory: DataDirectory?
    /// In nanoseconds.
    let patience: UInt64
    let isQuiet: Bool

    /// The broker's state when it has nothing to do.
    struct Reading {
        var memory: BrokerProcess.Memory
        /// The most that was ever resident.
        var peakResident: UInt64
        var disk: DataDirectory.Usage?
    }

    /// The cost of a step.
    struct Step {
        var begin: CPUMark
        /// The time at which its last client was served.
        var end: CPUMark
        /// The time at which the broker was idle after it.
        var calm: CPUMark
    }

    /// The figures, and the number of lost or misplaced messages.
    func run() throws(BenchFailure) -> (report: Report, faults: UInt64) {
        var report = Report("offline", address, process)
        report.parameters = parameters
        var faults: UInt64 = 0
        if part != .drain { faults += try fill(&report) }
        if part != .fill { faults += try drain(&report) }
        return (report, faults)
    }

    /// Each of these clients subscribes and disconnects; returns the broker's CPU time.
    private func subscribe() throws(BenchFailure) -> UInt64 {
        var sockets = try ClientSockets()
        var crowd = IdleCrowd(
            IdleRun.Settings(
                steps: [], subscribes: true, qos: plan.qos, persists: true, leaves: true,
                userName: nil, keepAlive: 600),
            address, patience, Progress("subscribe", isQuiet: isQuiet), names: names)
        let begin = try CPUMark(process)
        try crowd.grow(to: plan.sessions + plan.idleSessions, &sockets)
        try crowd.leave(&sockets)
        crowd.progress.clear()
        return try CPUMark(process).total - begin.total
    }

    private func fill(_ report: inout Report) throws(BenchFailure) -> UInt64 {
        let subscribing = try subscribe()
        var sockets = try ClientSockets()
        var fill = OfflineFill(plan, address, names, Progress("fill", isQuiet: isQuiet))
        try fill.join(&sockets, patience: patience)
        let before = try settle(&sockets, &fill)
        let begin = try CPUMark(process)
        try fill.run(&sockets, patience: patience)
        let end = try CPUMark(process)
        let after = try settle(&sockets, &fill)
        let step = Step(begin: begin, end: end, calm: try CPUMark(process))
        try fill.leave(&sockets, patience: patience)

        let sessions = Double(plan.sessions + plan.idleSessions)
        report.add(
            "subscribe_cpu_us_per_session", "broker CPU per session that subscribes (us)",
            Double(subscribing) / 1e3 / sessions, digits: 1)
        addStep("fill", step, &report)
        report.add(
            "acknowledged_p50_us", "fill: until acknowledged p50 (us)",
            nanoseconds: fill.latency.value(atQuantile: 0.5))
        report.add(
            "acknowledged_p99_us", "fill: until acknowledged p99 (us)",
            nanoseconds: fill.latency.value(atQuantile: 0.99))
        report.add(
            "acknowledged_max_us", "fill: until acknowledged max (us)",
            nanoseconds: fill.latency.maximum)
        addReading("before", before, &report)
        addReading("filled", after, &report)
        let messages = Double(plan.messages)
        report.add(
            "memory_bytes_per_message", "memory per message that waits (bytes)",
            (Double(after.memory.unshared) - Double(before.memory.unshared)) / messages, digits: 1)
        if let disk = after.disk, let empty = before.disk {
            report.add(
                "disk_bytes_per_message", "disk per message that waits (bytes)",
                (Double(disk.total) - Double(empty.total)) / messages, digits: 0)
            report.add(
                "file_bytes_per_message", "  of it in the largest file",
                (Double(disk.largestFile) - Double(min(empty.largestFile, disk.largestFile)))
                    / messages, digits: 0)
        }
        report.add(
            "stray_acknowledgements", "acknowledgements for nothing",
            count: fill.strayAcknowledgements)
        return fill.strayAcknowledgements
    }

    private func drain(_ report: inout Report) throws(BenchFailure) -> UInt64 {
        var sockets = try ClientSockets()
        var drain = OfflineDrain(
            plan, address, names, Progress("drain", isQuiet: isQuiet), isSecondVisit: false)
        let begin = try CPUMark(process)
        try drain.run(&sockets, patience: patience)
        let end = try CPUMark(process)
        let after = try settle(&sockets, &drain)
        let step = Step(begin: begin, end: end, calm: try CPUMark(process))

        let lost = plan.messages - min(plan.messages, drain.delivered)
        // After a loss, the rest would be counted twice.
        let left = lost == 0 ? try visitAgain() : Leftovers()
        let duplicated = drain.duplicates + left.messages
        let foreign = drain.foreign + left.foreign
        let forgotten = drain.forgotten + left.forgotten

        addStep("drain", step, &report)
        report.add(
            "first_message_p50_us", "drain: CONNECT to first message p50 (us)",
            nanoseconds: drain.firstDelivery.value(atQuantile: 0.5))
        report.add(
            "first_message_p99_us", "drain: CONNECT to first message p99 (us)",
            nanoseconds: drain.firstDelivery.value(atQuantile: 0.99))
        addReading("drained", after, &report)
        report.add("delivered", "delivered", count: drain.delivered)
        report.add("lost", "lost", count: lost)
        report.add("duplicated", "duplicated", count: duplicated)
        report.add("out_of_order", "out of order", count: drain.outOfOrder)
        report.add("foreign", "foreign or damaged", count: foreign)
        report.add(
            "forgotten", "sessions not present on return", count: forgotten)
        if lost == 0 { try removeSessions() }
        return lost + duplicated + drain.outOfOrder + foreign + forgotten
    }

    /// Messages left for clients that should have received all.
    private struct Leftovers {
        var messages: UInt64 = 0
        var foreign: UInt64 = 0
        var forgotten: UInt64 = 0
    }

    private func visitAgain() throws(BenchFailure) -> Leftovers {
        var sockets = try ClientSockets()
        var visit = OfflineDrain(
            plan, address, names, Progress("visit", isQuiet: isQuiet), isSecondVisit: true)
        try visit.run(&sockets, patience: patience)
        return Leftovers(
            messages: visit.duplicates, foreign: visit.foreign, forgotten: visit.forgotten)
    }

    private func removeSessions() throws(BenchFailure) {
        var sockets = try ClientSockets()
        var cleaner = SessionCleaner(
            address: address, patience: patience,
            identifiers: (0..<plan.sessions + plan.idleSessions).map {
                names.clientID("i", $0)
            })
        try cleaner.run(&sockets)
    }

    /// The broker's state once it is idle.
    private func settle<Handler: PacketHandler & ~Copyable>(
        _ sockets: inout ClientSockets, _ handler: inout Handler
    ) throws(BenchFailure) -> Reading {
        try Calm.await(
            process, intervals: Self.calmIntervals, atMost: Self.longestCalming, &sockets, &handler)
        return Reading(
            memory: try process.memory(), peakResident: try process.peakResidentBytes(),
            disk: try dataDirectory?.usage())
    }

    private func addStep(_ name: String, _ step: Step, _ report: inout Report) {
        let messages = Double(plan.messages)
        let seconds = Double(step.end.time - step.begin.time) / 1e9
        report.add(
            "\(name)_cpu_us_per_message", "\(name): broker CPU per message (us)",
            Double(step.calm.total - step.begin.total) / 1e3 / messages, digits: 2)
        report.add(
            "\(name)_later_cpu_us_per_message", "  of it after the last client was served (us)",
            Double(step.calm.total - step.end.total) / 1e3 / messages, digits: 2)
        report.add(
            "\(name)_system_percent", "  of it in the kernel (%)",
            Double(step.calm.system - step.begin.system)
                / Double(max(step.calm.total - step.begin.total, 1)) * 100, digits: 1)
        report.add("\(name)_seconds", "\(name): all served after (s)", seconds, digits: 2)
        report.add(
            "\(name)_per_second", "\(name): messages per second", messages / max(seconds, 1e-9),
            digits: 0)
        report.add(
            "\(name)_generator_percent", "\(name): generator CPU (% of one core)",
            Double(step.end.own - step.begin.own) / 1e7 / max(seconds, 1e-9), digits: 1)
    }

    private func addReading(_ name: String, _ reading: Reading, _ report: inout Report) {
        report.add(
            "\(name)_memory_bytes", "\(name): private memory (bytes)",
            count: reading.memory.unshared)
        report.add(
            "\(name)_pss_bytes", "\(name): proportional memory (bytes)",
            count: reading.memory.proportional)
        report.add(
            "\(name)_peak_bytes", "\(name): most that was ever resident (bytes)",
            count: reading.peakResident)
        guard let disk = reading.disk else { return }
        report.add("\(name)_disk_bytes", "\(name): data on disk (bytes)", count: disk.total)
        report.add(
            "\(name)_file_bytes", "\(name): its largest file (bytes)", count: disk.largestFile)
    }

    private var parameters: [(String, JSONValue)] {
        [
            ("run", .string(String(names.run, radix: 16))),
            ("sessions", .integer(Int64(plan.sessions))),
            ("idle_sessions", .integer(Int64(plan.idleSessions))),
            ("messages_per_session", .integer(Int64(plan.messagesPerSession))),
            ("publishers", .integer(Int64(plan.publishers))),
            ("window", .integer(Int64(plan.window))),
            ("qos", .integer(Int64(plan.qos.rawValue))),
            ("payload_bytes", .integer(Int64(plan.payloadBytes))),
            ("returning_at_once", .integer(Int64(plan.returningAtOnce))),
        ]
    }
}
