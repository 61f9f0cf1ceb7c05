import MQTTCodec

/// The memory of idle connections, or of sessions whose clients are offline.
struct IdleRun {
    struct Settings {
        /// Numbers of connections to measure at; ascending.
        var steps: [Int]
        /// Each client subscribes to a topic of its own.
        var subscribes: Bool
        /// Of that subscription.
        var qos = QoS.atLeastOnce
        /// Clients connect with clean session 0.
        var persists: Bool
        /// Clients disconnect once their session exists, so that sessions alone are measured. The
        /// memory of former connections is then shared by few.
        var leaves: Bool
        /// Of every client; none when `nil`.
        var userName: String?
        /// Seconds; longer than the run, so that no client has to ping.
        var keepAlive: UInt16
    }

    /// Memory with so many connections.
    struct Reading {
        let connections: Int
        let memory: BrokerProcess.Memory
        let isSettled: Bool
    }

    private static var sampleInterval: UInt64 { 100_000_000 }
    /// Equal samples in a row that count as settled: a broker may tidy up after a pause.
    private static var calmSamples: Int { 20 }
    private static var longestSettling: UInt64 { 10_000_000_000 }

    let settings: Settings
    let address: BrokerAddress
    let process: BrokerProcess
    /// `nil` for plain TCP.
    let tls: ClientTLS?
    /// In nanoseconds.
    let patience: UInt64
    let isQuiet: Bool

    func run() throws(BenchFailure) -> Report {
        var sockets = try ClientSockets(tls: tls)
        var crowd = IdleCrowd(
            settings, address, patience, Progress("idle", isQuiet: isQuiet))
        var readings = [try settle(0, &sockets, &crowd)]
        for step in settings.steps {
            try crowd.grow(to: step, &sockets)
            readings.append(try settle(step, &sockets, &crowd))
        }
        if settings.persists {
            try crowd.leave(&sockets)
            var cleaner = SessionCleaner(
                address: address, patience: patience,
                identifiers: (0..<crowd.ready).map { crowd.names.clientID("i", $0) },
                userName: settings.userName)
            try cleaner.run(&sockets)
        }
        crowd.progress.clear()
        return report(readings)
    }

    /// Memory once it has stopped changing, or when it has had its time.
    private func settle(
        _ connections: Int, _ sockets: inout ClientSockets, _ crowd: inout IdleCrowd
    ) throws(BenchFailure) -> Reading {
        let deadline = Clock.nanoseconds() + Self.longestSettling
        var memory = try process.memory()
        var calm = 0
        while calm < Self.calmSamples, Clock.nanoseconds() < deadline {
            let next = Clock.nanoseconds() + Self.sampleInterval
            while Clock.nanoseconds() < next {
                try sockets.turn(atMost: Int64(Self.sampleInterval), &crowd)
            }
            let sample = try process.memory()
            calm = sample == memory ? calm + 1 : 0
            memory = sample
        }
        return Reading(
            connections: connections, memory: memory, isSettled: calm >= Self.calmSamples)
    }

    private func report(_ readings: [Reading]) -> Report {
        var report = Report("idle", address, process)
        report.parameters = [
            ("connections", .array(settings.steps.map { .integer(Int64($0)) })),
            ("subscriptions_each", .integer(settings.subscribes ? 1 : 0)),
            ("persistent", .bool(settings.persists)),
            ("away", .bool(settings.leaves)),
            ("tls", .bool(tls != nil)),
            ("user_name", .bool(settings.userName != nil)),
            ("keep_alive_s", .integer(Int64(settings.keepAlive))),
        ]
        let base = readings[0]
        report.add(
            "base_bytes", "memory of the broker without clients (bytes)",
            count: base.memory.unshared)
        var previous = base
        for reading in readings.dropFirst() {
            let count = reading.connections
            report.add(
                "bytes_per_connection_\(count)",
                "bytes per connection at \(Text.grouped(UInt64(count)))",
                Self.perConnection(from: base, to: reading, \.unshared), digits: 0)
            report.add(
                "pss_bytes_per_connection_\(count)", "  the same by proportional size (Pss)",
                Self.perConnection(from: base, to: reading, \.proportional), digits: 0)
            if previous.connections > 0 {
                report.add(
                    "bytes_per_added_connection_\(count)",
                    "  per connection added since \(Text.grouped(UInt64(previous.connections)))",
                    Self.perConnection(from: previous, to: reading, \.unshared), digits: 0)
            }
            previous = reading
        }
        report.add(
            "unsettled_readings", "readings taken before memory settled",
            count: UInt64(readings.count { !$0.isSettled }))
        return report
    }

    private static func perConnection(
        from base: Reading, to reading: Reading, _ part: KeyPath<BrokerProcess.Memory, UInt64>
    ) -> Double {
        let count = reading.connections - base.connections
        let bytes = Double(reading.memory[keyPath: part]) - Double(base.memory[keyPath: part])
        return bytes / Double(max(count, 1))
    }
}

/// The clients of an ``IdleRun``.
struct IdleCrowd: PacketHandler {
    private static var mostJoining: Int { 64 }

    let settings: IdleRun.Settings
    let address: BrokerAddress
    let patience: UInt64
    var progress: Progress
    let names: RunNames
    private var target = 0
    private var opened = 0
    private(set) var ready = 0
    /// The client behind each connection.
    private var numbers: [Int] = []
    private var isLeaving = false
    private var lastArrival = Clock.nanoseconds()

    init(
        _ settings: IdleRun.Settings, _ address: BrokerAddress, _ patience: UInt64,
        _ progress: Progress, names: RunNames = RunNames()
    ) {
        self.names = names
        self.settings = settings
        self.address = address
        self.patience = patience
        self.progress = progress
    }

    /// Connects until there are `count` clients, all of them accepted and subscribed.
    mutating func grow(to count: Int, _ sockets: inout ClientSockets) throws(BenchFailure) {
        target = count
        lastArrival = Clock.nanoseconds()
        while ready < target {
            try sockets.turn(atMost: 50_000_000, &self)
            guard sockets.now < lastArrival + patience else {
                throw BenchFailure(
                    "\(ready) of \(target) clients are connected, and nothing more arrives.")
            }
        }
    }

    /// Ends all connections.
    mutating func leave(_ sockets: inout ClientSockets) throws(BenchFailure) {
        isLeaving = true
        sockets.disconnectAll()
        lastArrival = Clock.nanoseconds()
        while sockets.count > 0, sockets.now < lastArrival + patience {
            try sockets.turn(atMost: 50_000_000, &self)
        }
    }

    mutating func receive(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        lastArrival = sockets.now
        if frame.type == .suback {
            try ClientPackets.checkGranted(settings.qos, frame, bytes, client)
            arrived(client, &sockets)
            return
        }
        try ClientPackets.checkAccepted(frame, bytes, client)
        if settings.subscribes {
            sockets.append(
                client,
                ClientPackets.subscribe(names.topic(numbers[Int(client)]), settings.qos))
        } else {
            arrived(client, &sockets)
        }
    }

    private mutating func arrived(_ client: UInt32, _ sockets: inout ClientSockets) {
        ready += 1
        if settings.leaves { sockets.disconnect(client) }
    }

    mutating func closed(
        _ client: UInt32, _ reason: String, _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        guard !isLeaving else { return }
        throw BenchFailure(
            "the connection of client \(client) ended: \(reason). "
                + "\(ready) of \(target) clients had been connected.")
    }

    mutating func endTurn(_ sockets: inout ClientSockets) throws(BenchFailure) {
        guard !isLeaving else { return }
        while opened < target, opened - ready < Self.mostJoining {
            let client = try sockets.open(address)
            if Int(client) == numbers.count { numbers.append(opened) }
            numbers[Int(client)] = opened
            sockets.append(
                client,
                ClientPackets.connect(
                    names.clientID("i", opened), cleanSession: !settings.persists,
                    keepAlive: settings.keepAlive, userName: settings.userName))
            opened += 1
        }
        progress.show(sockets.now, "\(ready) of \(target) connected")
    }
}
