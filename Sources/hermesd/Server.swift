import AdminAPI
import Broker
import Glibc
import Logging
import OperatorConfiguration
import Reactor
import Store
import Synchronization
import UnixSignals

/// All parts of a running broker, and the order in which they start and stop.
struct Server {
    private let configuration: HermesConfiguration
    private let logger: Logger

    /// Questions of the admin plane that may wait for the shard; more are answered 503.
    private static let mailboxCapacity = 16_384

    init(_ configuration: HermesConfiguration, _ logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    func run() async throws {
        let directory = try DataDirectory(path: configuration.dataDirectory)
        let token = try adminToken(directory.path)
        let mailbox = try Mailbox<ShardMessage>(capacity: Self.mailboxCapacity)
        let brokerEnd = try startBroker(mailbox)
        let admin = try AdminServer(
            configuration: adminConfiguration(token), broker: BrokerBridge(mailbox: mailbox),
            logger: logger)

        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                try await admin.run { endpoints in
                    logger.info(
                        "Admin API ready",
                        metadata: [
                            "admin.address": "\(Self.text(endpoints))",
                            "admin.socket": "\(endpoints.unixSocketPath ?? "none")",
                        ])
                }
            }
            tasks.addTask {
                for await signal in signals {
                    logger.info("Stopping", metadata: ["signal": "\(signal)"])
                    return
                }
            }
            // A broker that ends by itself has failed, and the process with it.
            tasks.addTask { try await brokerEnd.wait() }
            defer { tasks.cancelAll() }
            // Whatever ends first, the broker drains before the process does.
            do {
                try await tasks.next()
            } catch {
                try await stopBroker(mailbox, brokerEnd)
                throw error
            }
            try await stopBroker(mailbox, brokerEnd)
        }
        logger.info("Stopped")
    }

    private func startBroker(_ mailbox: Mailbox<ShardMessage>) throws -> BrokerEnd {
        var verify: Authenticator.Verify?
        if let path = configuration.passwordFile {
            let checks = try PasswordChecks(path: path, logger: logger)
            verify = { checks.verify(userName: $0, password: $1) }
        }
        let settings = BrokerSettings(
            configuration, descriptorLimit: BrokerSettings.raiseDescriptorLimit())
        let end = BrokerEnd()
        let started = Started()
        let logger = logger
        try BrokerThread.start(name: "hermes-shard-0") { [verify] in
            let outcome: Result<Void, any Error>
            do {
                var loop = try BrokerLoop(
                    settings: settings, store: MemoryStore(), mailbox: mailbox, verify: verify,
                    identity: BrokerLoop.Identity(version: Hermesd.version, durability: "none"),
                    logger: logger)
                for address in loop.listenerAddresses {
                    logger.info("MQTT listener ready", metadata: ["listener.address": "\(address)"])
                }
                started.report(nil)
                try loop.run()
                outcome = .success(())
            } catch {
                started.report(error)
                outcome = .failure(error)
            }
            end.reach(outcome)
        }
        if let error = started.wait() { throw error }
        return end
    }

    private func stopBroker(_ mailbox: Mailbox<ShardMessage>, _ end: BrokerEnd) async throws {
        // A full mailbox is worked off within a turn.
        while mailbox.post(.stop, isUrgent: true) == .full { await Task.yield() }
        try await end.wait()
    }

    private func adminToken(_ directory: String) throws -> AdminToken {
        let file = AdminTokenFile(dataDirectory: directory)
        // Set and empty is what a compose file makes of a variable that nobody set.
        let value = ProcessEnvironment.current()[AdminTokenFile.environmentVariable] ?? ""
        let (token, origin) = try file.loadOrCreate(environmentValue: value.isEmpty ? nil : value)
        if origin == .created {
            logger.info("Admin token made", metadata: ["file": "\(file.path)"])
        }
        return token
    }

    private func adminConfiguration(_ token: AdminToken) -> AdminServerConfiguration {
        var result = AdminServerConfiguration(
            token: token, durability: "none", version: Hermesd.version)
        result.address = configuration.admin.address
        result.port = configuration.admin.port
        result.unixSocketPath = configuration.admin.unixSocket
        result.maximumBodyBytes = configuration.limits.maxPacketBytes
        result.maximumTopicLevels = configuration.limits.maxTopicLevels
        result.orderTopicTemplate = configuration.orders.topicTemplate
        result.orderChannelTemplate = configuration.orders.channelTemplate
        result.orderQoS = configuration.orders.qos
        return result
    }

    private static func text(_ endpoints: AdminEndpoints) -> String {
        endpoints.address.contains(":")
            ? "[\(endpoints.address)]:\(endpoints.port)"
            : "\(endpoints.address):\(endpoints.port)"
    }
}

/// How the broker's thread ended, once it has.
private final class BrokerEnd: Sendable {
    private struct State {
        var outcome: Result<Void, any Error>?
        var waiters: [CheckedContinuation<Void, any Error>] = []
    }

    private let state = Mutex(State())

    func reach(_ outcome: Result<Void, any Error>) {
        let waiters = state.withLock { state in
            state.outcome = outcome
            let waiters = state.waiters
            state.waiters = []
            return waiters
        }
        for waiter in waiters { waiter.resume(with: outcome) }
    }

    /// Throws what ended the thread, if it did not end by a stop.
    func wait() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let outcome = state.withLock { state in
                if state.outcome == nil { state.waiters.append(continuation) }
                return state.outcome
            }
            if let outcome { continuation.resume(with: outcome) }
        }
    }
}

/// Whether the broker's thread could open its listeners; the main thread waits for the word.
private final class Started: Sendable {
    private let outcome = Mutex<(any Error)??>(nil)

    func report(_ error: (any Error)?) {
        outcome.withLock { if $0 == nil { $0 = .some(error) } }
    }

    /// Opening listeners takes microseconds, and nothing else runs yet.
    func wait() -> (any Error)? {
        while true {
            if let outcome = outcome.withLock({ $0 }) { return outcome }
            sched_yield()
        }
    }
}
