import MQTTCodec
import Structures

/// Many clients that connect at once, as after a network failure.
struct ConnectStorm {
    struct Settings {
        var clients: Int
        /// Storms one after another; each begins when the former clients have disconnected.
        var rounds: Int
        /// Each client subscribes to a topic of its own.
        var subscribes: Bool
        /// Each client publishes one QoS 1 message, without receivers.
        var publishes: Bool
        /// Connections being made at a time.
        var mostJoining: Int
        /// Connections begun per second; `nil` for as fast as they go.
        var perSecond: Int?
    }

    private static var longestCalming: UInt64 { 5_000_000_000 }

    let settings: Settings
    let address: BrokerAddress
    let process: BrokerProcess?
    /// `nil` for plain TCP.
    let tls: ClientTLS?
    /// In nanoseconds.
    let patience: UInt64
    let isQuiet: Bool

    func run() throws(BenchFailure) -> Report {
        var sockets = try ClientSockets(tls: tls)
        var crowd = StormCrowd(settings, address, Progress("connect", isQuiet: isQuiet))
        var cpu: UInt64 = 0
        var ownCPU: UInt64 = 0
        var spans: [UInt64] = []
        for round in 0..<settings.rounds {
            let begin = try CPUMark(process)
            try crowd.start(round, &sockets, patience: patience)
            let end = try CPUMark(process)
            cpu += end.total - begin.total
            ownCPU += end.own - begin.own
            spans.append(crowd.lastDone - begin.time)
            try crowd.leave(&sockets, patience: patience)
            // The broker may still be busy with the former clients.
            if round + 1 < settings.rounds, let process {
                try Calm.await(
                    process, intervals: 1, atMost: Self.longestCalming, &sockets, &crowd)
            }
        }
        crowd.progress.clear()
        guard crowd.done > 0 else {
            throw BenchFailure(
                "none of \(settings.clients) clients got through: \(crowd.refused) refused, "
                    + "\(crowd.broken) cut off, the rest without an answer.")
        }
        return report(crowd, cpu: cpu, ownCPU: ownCPU, spans: spans.sorted())
    }

    private func report(
        _ crowd: borrowing StormCrowd, cpu: UInt64, ownCPU: UInt64, spans: [UInt64]
    ) -> Report {
        var report = Report("connect", address, process)
        report.parameters = [
            ("clients", .integer(Int64(settings.clients))),
            ("rounds", .integer(Int64(settings.rounds))),
            ("subscribe", .bool(settings.subscribes)),
            ("publish", .bool(settings.publishes)),
            ("at_once", .integer(Int64(settings.mostJoining))),
            ("tls", .bool(tls != nil)),
        ]
        let clients = Double(crowd.done)
        if process != nil {
            report.add(
                "broker_cpu_us_per_client", "broker CPU per client (us)",
                Double(cpu) / 1e3 / clients, digits: 1)
        }
        let median = spans[spans.count / 2]
        report.add(
            "milliseconds", "all clients done after (ms)", Double(median) / 1e6, digits: 1)
        report.add(
            "clients_per_second", "clients per second",
            clients / Double(settings.rounds) / (Double(max(median, 1)) / 1e9), digits: 0)
        report.add(
            "done_p50_us", "a client is done, p50 (us)",
            nanoseconds: crowd.latency.value(atQuantile: 0.5))
        report.add(
            "done_p99_us", "a client is done, p99 (us)",
            nanoseconds: crowd.latency.value(atQuantile: 0.99))
        report.add("done_max_us", "a client is done, max (us)", nanoseconds: crowd.latency.maximum)
        let all = settings.clients * settings.rounds
        report.add("done", "clients done", count: UInt64(crowd.done))
        if let tls {
            report.add("resumed", "TLS sessions resumed", count: UInt64(tls.resumed))
        }
        report.add("refused", "refused by CONNACK", count: UInt64(crowd.refused))
        report.add("broken", "cut off", count: UInt64(crowd.broken))
        report.add(
            "unanswered", "without an answer",
            count: UInt64(all - crowd.done - crowd.refused - crowd.broken))
        report.add(
            "generator_cpu_us_per_client", "generator CPU per client (us)",
            Double(ownCPU) / 1e3 / clients, digits: 1)
        return report
    }
}

/// The clients of a ``ConnectStorm``.
struct StormCrowd: PacketHandler, ~Copyable {
    let settings: ConnectStorm.Settings
    let address: BrokerAddress
    var progress: Progress
    let names = RunNames()
    private var round = 0
    private var begun: UInt64 = 0
    private var opened = 0
    /// Of this round: done, refused or cut off.
    private var settled = 0
    private var isLeaving = true
    private var lastArrival = Clock.nanoseconds()
    /// When the last client of this round was done.
    private(set) var lastDone: UInt64 = 0
    /// Clients with a result, by connection.
    private var isSettled: [Bool]
    /// The beginning of a client's time, by connection: its scheduled time at a rate, else the
    /// beginning of the round.
    private var dueAt: [UInt64]
    /// Of all rounds.
    private(set) var done = 0
    private(set) var refused = 0
    private(set) var broken = 0
    var latency = LatencyHistogram()

    init(_ settings: ConnectStorm.Settings, _ address: BrokerAddress, _ progress: Progress) {
        self.settings = settings
        self.address = address
        self.progress = progress
        isSettled = Array(repeating: false, count: settings.clients)
        dueAt = Array(repeating: 0, count: settings.clients)
    }

    /// Connects all clients; returns when each has its last answer or nothing more arrives.
    mutating func start(
        _ round: Int, _ sockets: inout ClientSockets, patience: UInt64
    ) throws(BenchFailure) {
        self.round = round
        begun = Clock.nanoseconds()
        lastArrival = begun
        lastDone = begun
        opened = 0
        settled = 0
        for client in 0..<settings.clients { isSettled[client] = false }
        isLeaving = false
        while settled < settings.clients, Clock.nanoseconds() < lastArrival + patience {
            try sockets.turn(atMost: turnNanoseconds, &self)
        }
    }

    /// Time to wait for answers before more clients begin.
    private var turnNanoseconds: Int64 {
        guard opened < settings.clients else { return 50_000_000 }
        return settings.perSecond == nil ? 0 : 1_000_000
    }

    /// Disconnects all clients.
    mutating func leave(
        _ sockets: inout ClientSockets, patience: UInt64
    ) throws(BenchFailure) {
        isLeaving = true
        sockets.disconnectAll()
        let deadline = Clock.nanoseconds() + patience
        while sockets.count > 0, Clock.nanoseconds() < deadline {
            try sockets.turn(atMost: 50_000_000, &self)
        }
    }

    mutating func receive(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        lastArrival = sockets.now
        switch frame.type {
        case .connack:
            guard case .connack(let connack) = try ClientPackets.decode(frame, bytes) else {
                return
            }
            guard connack.returnCode == .accepted else {
                refused += 1
                settle(client)
                return
            }
            if settings.subscribes {
                sockets.append(
                    client, ClientPackets.subscribe(names.topic(Int(client)), .atLeastOnce))
            } else {
                publishOrFinish(client, &sockets)
            }
        case .suback:
            try ClientPackets.checkGranted(.atLeastOnce, frame, bytes, client)
            publishOrFinish(client, &sockets)
        case .puback where settings.publishes:
            finish(client, sockets.now)
        default:
            throw BenchFailure("client \(client) got \(frame.type), which it did not ask for")
        }
    }

    mutating func closed(
        _ client: UInt32, _ reason: String, _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        guard !isLeaving, !isSettled[Int(client)] else { return }
        broken += 1
        settle(client)
    }

    mutating func endTurn(_ sockets: inout ClientSockets) throws(BenchFailure) {
        guard !isLeaving else { return }
        // A few per turn, so that answers are read while more clients come.
        var most = min(settings.clients, settled + settings.mostJoining, opened + 256)
        if let rate = settings.perSecond {
            let due = (Clock.nanoseconds() - begun) * UInt64(rate) / 1_000_000_000
            most = min(most, Int(clamping: due))
        }
        while opened < most {
            let client = try sockets.open(address)
            guard Int(client) < settings.clients else {
                throw BenchFailure("client \(opened) is numbered \(client)")
            }
            isSettled[Int(client)] = false
            dueAt[Int(client)] =
                begun
                + (settings.perSecond.map { UInt64(opened) * 1_000_000_000 / UInt64($0) } ?? 0)
            sockets.append(
                client,
                ClientPackets.connect(
                    names.clientID("c", round * settings.clients + opened),
                    cleanSession: true, keepAlive: 120))
            opened += 1
        }
        progress.show(sockets.now, "round \(round + 1), \(settled) of \(settings.clients) done")
    }

    private mutating func publishOrFinish(_ client: UInt32, _ sockets: inout ClientSockets) {
        guard settings.publishes else {
            finish(client, sockets.now)
            return
        }
        sockets.append(
            client,
            ClientPackets.publish(
                names.reportTopic(Int(client)), payload: Array(repeating: 0x2E, count: 64)))
    }

    private mutating func finish(_ client: UInt32, _ now: UInt64) {
        done += 1
        lastDone = now
        latency.record(max(now, dueAt[Int(client)]) - dueAt[Int(client)])
        settle(client)
    }

    private mutating func settle(_ client: UInt32) {
        guard !isSettled[Int(client)] else { return }
        isSettled[Int(client)] = true
        settled += 1
    }
}
