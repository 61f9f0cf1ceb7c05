import Logging
import OperatorConfiguration
import OperatorLog

/// Reads the configuration and its files again at SIGHUP. Everything is checked first and then
/// replaced together; after a mistake anywhere, the whole running configuration stays.
struct Reload {
    /// One thing that a reload brings up to date.
    struct Part: Sendable {
        /// The name for the log, such as "password file".
        var name: String
        /// Reads and checks the new state; throws when it cannot be used.
        var prepare: @Sendable () throws -> Prepared
    }

    /// A new state that was checked.
    struct Prepared: Sendable {
        /// The key of the setting whose file has changed; `nil` when it has not.
        var changed: String?
        /// Puts the new state into use. False when the old one stays, which has then been logged.
        var use: @Sendable () -> Bool
    }

    private let loader: ConfigurationLoader
    private var running: HermesConfiguration
    private let log: OperatorLog
    private let logger: Logger
    private let parts: [Part]
    private let apply: @Sendable (HermesConfiguration) -> Bool

    /// `apply` puts the limits of a configuration into use. False when the old ones stay, which has
    /// then been logged.
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
    }

    mutating func run() {
        let change: ConfigurationChange
        do throws(ConfigurationError) {
            change = ConfigurationChange(
                from: running, to: try loader.load(whileRunning: running))
        } catch {
            logger.error("Configuration unusable", problems: error)
            logger.error("Reload refused, everything stays as it was")
            return
        }
        var prepared: [Prepared] = []
        var isUsable = true
        for part in parts {
            do {
                prepared.append(try part.prepare())
            } catch {
                isUsable = false
                logger.error("Unusable \(part.name)", problems: error)
            }
        }
        guard isUsable else {
            logger.error("Reload refused, everything stays as it was")
            return
        }
        let formerLimits = running.limits
        running = change.configuration
        let used = prepared.filter { $0.use() }
        log.level = Logger.Level(running.logging.level)
        var changed = change.applied + used.compactMap(\.changed)
        if !apply(running) {
            // The next reload compares with the limits in use.
            running.limits = formerLimits
            changed.removeAll { $0.hasPrefix("limits.") }
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
    }
}

extension Logger {
    /// Logs every problem with a file, one line each. The error's description has one line per
    /// problem, and counts those beyond a bound.
    func error(_ message: Logger.Message, problems: some Error) {
        for problem in "\(problems)".split(separator: "\n") {
            error(message, metadata: ["problem": "\(problem)"])
        }
    }
}

extension Logger.Level {
    init(_ level: HermesConfiguration.Logging.Level) {
        self = Logger.Level(rawValue: level.rawValue) ?? .info
    }
}
