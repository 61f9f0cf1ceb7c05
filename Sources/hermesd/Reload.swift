import Logging
import OperatorConfiguration
import OperatorLog

/// Reads the configuration and the files that it names again, as SIGHUP asks: everything is checked
/// first, then everything is swapped. Whatever is bad leaves the whole running configuration.
struct Reload {
    /// One thing that a reload brings up to date.
    struct Part: Sendable {
        /// As the log names it: "password file".
        var name: String
        /// Reads and checks the new state, and returns what puts it to use.
        var prepare: @Sendable () throws -> @Sendable () -> Void
    }

    private let loader: ConfigurationLoader
    private var running: HermesConfiguration
    private let log: OperatorLog
    private let logger: Logger
    private let parts: [Part]
    private let apply: @Sendable (HermesConfiguration) -> Void

    /// `apply` puts the limits of a configuration to use.
    init(
        loader: ConfigurationLoader, running: HermesConfiguration, log: OperatorLog,
        logger: Logger, parts: [Part], apply: @escaping @Sendable (HermesConfiguration) -> Void
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
            change = ConfigurationChange(from: running, to: try loader.load())
        } catch {
            for problem in error.problems {
                logger.error("Configuration unusable", metadata: ["problem": "\(problem)"])
            }
            logger.error("Reload refused, everything stays as it was")
            return
        }
        var commits: [@Sendable () -> Void] = []
        var isUsable = true
        for part in parts {
            do {
                commits.append(try part.prepare())
            } catch {
                isUsable = false
                for problem in "\(error)".split(separator: "\n") {
                    logger.error("Unusable \(part.name)", metadata: ["problem": "\(problem)"])
                }
            }
        }
        guard isUsable else {
            logger.error("Reload refused, everything stays as it was")
            return
        }
        running = change.configuration
        for commit in commits { commit() }
        log.level = Logger.Level(running.logging.level)
        apply(running)
        logger.notice(
            "Configuration read again",
            metadata: [
                "changed":
                    "\(change.applied.isEmpty ? "nothing" : change.applied.joined(separator: " "))"
            ])
        if !change.deferred.isEmpty {
            logger.warning(
                "These keys take effect at the next start",
                metadata: ["keys": "\(change.deferred.joined(separator: " "))"])
        }
    }
}

extension Logger.Level {
    init(_ level: HermesConfiguration.Logging.Level) {
        self = Logger.Level(rawValue: level.rawValue) ?? .info
    }
}
