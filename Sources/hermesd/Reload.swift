import AdminAPI
import BrokerAPI
import Logging
import OperatorConfiguration
import OperatorLog
import PlainText
import SystemFiles

/// Reads the configuration and its files again at SIGHUP. All are checked first and then replaced
/// together; after any error the running configuration stays.
struct Reload: Sendable {
    /// One thing that a reload renews.
    struct Part: Sendable {
        /// The name for the log, such as "password file".
        var name: String
        /// The key of the setting that names its file; `nil` where the error's description names it.
        var setting: String?
        /// Reads and checks the new state; throws when it cannot be used.
        var prepare: @Sendable () throws -> Prepared
    }

    /// A new, checked state.
    struct Prepared: Sendable {
        /// The key of the setting whose file has changed; `nil` if it has not.
        var changed: String?
        /// Installs the new state. On failure it logs, keeps the old state, and returns false.
        var use: @Sendable () -> Bool
    }

    private var loader: ConfigurationLoader
    private var running: HermesConfiguration
    /// The layers of the last configuration that was read; `nil` when the file of the start can no
    /// longer be read.
    private var origins: EffectiveSettings?
    private let log: OperatorLog
    private let logger: Logger
    private let parts: [Part]
    private let apply: @Sendable (HermesConfiguration) -> Bool

    /// `apply` installs a configuration's limits. On failure it logs, keeps the old, returns false.
    init(
        loader: ConfigurationLoader, running: HermesConfiguration, log: OperatorLog,
        logger: Logger, parts: [Part], apply: @escaping @Sendable (HermesConfiguration) -> Bool
    ) {
        self.loader = loader
        self.running = running
        self.log = log
        self.logger = logger
        self.parts = parts
        self.apply = apply
        origins = try? loader.read(whileRunning: running).origins
    }

    /// The configuration in force.
    var settings: [ConfiguredSetting] { origins?.list(running: running) ?? [] }

    /// Gives keys other values until the next start; `nil` gives a key back its configured one. All
    /// or nothing: returns the problems.
    mutating func change(_ values: [ForeignText: String?]) -> [String] {
        let refused = values.keys.sorted().compactMap { EffectiveSettings.refusal(ofChanging: $0) }
        guard refused.isEmpty else { return refused }
        let former = loader.runTime
        // Each is a key of the configuration, as the refusals above have found.
        for (key, value) in values { loader.runTime[key.string] = value }
        guard case .refused(let problems) = run() else { return [] }
        loader.runTime = former
        return problems
    }

    /// Reads everything again.
    mutating func run() -> ReloadOutcome {
        let change: ConfigurationChange
        let read: EffectiveSettings
        do throws(ConfigurationError) {
            let (configuration, origins) = try loader.read(whileRunning: running)
            change = ConfigurationChange(from: running, to: configuration)
            read = origins
        } catch {
            logger.error("Configuration unusable", problems: error)
            logger.error("Reload refused, everything stays as it was")
            return .refused("\(error)".split(separator: "\n").map { String($0) })
        }
        var prepared: [Prepared] = []
        var problems: [String] = []
        for part in parts {
            do {
                prepared.append(try part.prepare())
            } catch {
                let reason = (error as? any FileRefusal)?.described(by: part.setting)
                let problem = read.placed(reason ?? "\(error)")
                problems.append("Unusable \(part.name): \(problem)")
                logger.error("Unusable \(part.name)", problems: problem)
            }
        }
        guard problems.isEmpty else {
            logger.error("Reload refused, everything stays as it was")
            return .refused(problems)
        }
        let formerLimits = running.limits
        running = change.configuration
        origins = read
        let used = prepared.filter { $0.use() }
        log.level = Logger.Level(running.logging.level)
        var changed = change.applied + used.compactMap(\.changed)
        if !apply(running) {
            // So that the next reload compares with the limits in use.
            running.limits = formerLimits
            changed.removeAll { $0.hasPrefix("limits.") }
            problems.append("The broker is too busy to take the new limits; try again.")
        }
        logger.notice(
            "Configuration read again",
            metadata: [
                "changed": "\(changed.isEmpty ? "nothing" : changed.joined(separator: " "))"
            ])
        if !change.deferred.isEmpty {
            logger.warning(
                "These keys take effect at the next start",
                metadata: ["keys": "\(change.deferred.joined(separator: " "))"])
        }
        guard problems.isEmpty else { return .refused(problems) }
        return .done(ConfigurationReload(changed: changed, atNextStart: change.deferred))
    }
}

extension Logger {
    func error(_ message: Logger.Message, problems: some Error) {
        error(message, problems: "\(problems)")
    }

    /// Logs each line of an error's description, which lists a bounded number of problems.
    func error(_ message: Logger.Message, problems: String) {
        for problem in problems.split(separator: "\n") {
            error(message, metadata: ["problem": "\(problem)"])
        }
    }
}

extension Logger.Level {
    init(_ level: HermesConfiguration.Logging.Level) {
        self = Logger.Level(rawValue: level.rawValue) ?? .info
    }
}
