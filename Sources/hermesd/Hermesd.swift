import AdminAPI
import ArgumentParser
import BrokerRuntime
import Glibc
import Logging
import OperatorConfiguration
import OperatorLog
import Store
import SystemFiles
import UnixSignals

/// The broker: reads the configuration, builds the parts, runs them, and stops them on a signal.
@main
struct Hermesd: AsyncParsableCommand {
    static let version = "0.1.0"

    static let configuration = CommandConfiguration(
        commandName: "hermesd",
        abstract: "MQTT 5.0 and 3.1.1 broker and push channel.",
        discussion: """
            Without --config the built-in defaults apply: MQTT on 127.0.0.1:1883, the HTTP API \
            on 127.0.0.1:8080, data in ./data. Every key of the configuration file can also be \
            given by environment, such as HERMES_LIMITS_MAX_IN_FLIGHT; flags come last and win.
            """,
        version: version)

    @Option(help: ArgumentHelp("Configuration file (YAML).", valueName: "file"))
    var config: String?
    @Option(help: ArgumentHelp("MQTT port; repeat it for more listeners; 0 takes a free one."))
    var port: [String] = []
    @Option(help: ArgumentHelp("Folder for data, made when missing.", valueName: "folder"))
    var dataDirectory: String?
    @Option(help: ArgumentHelp("HTTP port; 0 takes a free one.", valueName: "port"))
    var adminPort: String?
    @Option(help: ArgumentHelp("Password file, see `hermesctl users`.", valueName: "file"))
    var passwordFile: String?
    @Option(help: ArgumentHelp("ACL file: who may publish and subscribe.", valueName: "file"))
    var aclFile: String?
    @Flag(inversion: .prefixedNo, help: "Whether clients without a user name may connect.")
    var allowAnonymous: Bool?
    @Option(help: ArgumentHelp("Unacknowledged messages to one client.", valueName: "count"))
    var maxInFlight: String?
    @Option(help: ArgumentHelp("Largest packet, such as 1MiB.", valueName: "size"))
    var maxPacket: String?
    @Option(help: ArgumentHelp("Time for CONNECT to arrive, such as 10s.", valueName: "time"))
    var connectTimeout: String?
    @Option(help: ArgumentHelp("Messages that wait for an offline client.", valueName: "count"))
    var queueMessages: String?
    @Option(
        help: ArgumentHelp(
            "When a message counts as stored: sync, 'interval 50ms' (or another time) or none.",
            valueName: "mode"))
    var durability: String?
    @Option(
        help: ArgumentHelp(
            "trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var loggingLevel: String?

    func run() async throws {
        if let lost = LostArguments.message {
            Self.say(lost)
            throw ExitCode(EX_CONFIG)
        }
        // Before the broker listens, a signal may simply end it. Process 1, as in a container,
        // needs a handler for that.
        for number in [SIGTERM, SIGINT] { signal(number) { _ in _exit(0) } }
        // Untrapped, SIGHUP would end the process; during the start it is deferred.
        let hangups = await UnixSignalsSequence(trapping: .sighup)
        let loader = loader
        let configuration: HermesConfiguration
        let origins: EffectiveSettings
        do throws(ConfigurationError) {
            (configuration, origins) = try loader.read()
        } catch {
            Self.say(error, isJSON: error.format == .json)
            throw ExitCode(EX_CONFIG)
        }
        let log = try OperatorLog.start(
            level: Logger.Level(configuration.logging.level),
            format: configuration.logging.format == .json ? .json : .text)
        defer { log.stop() }
        do {
            try await Server(configuration, loader: loader, log: log).run(hangups: hangups)
        } catch let error as any FileRefusal where !error.isTransient {
            // Exits as for a mistake in the configuration: a restart would not help.
            end(log, of: error, configuration, origins)
            throw ExitCode(EX_CONFIG)
        } catch let error as StoreFailure where error.needsPerson {
            end(log, of: error, configuration, origins)
            throw ExitCode(EX_CONFIG)
        } catch {
            end(log, of: error, configuration, origins)
            throw ExitCode.failure
        }
    }

    /// Says the reason for which the broker ends: in the log, where that is for a program, and for a
    /// person as a line of its own.
    private func end(
        _ log: OperatorLog, of error: any Error, _ configuration: HermesConfiguration,
        _ origins: EffectiveSettings
    ) {
        let refusal = (error as? any FileRefusal).map { origins.placed($0.description) }
        let reason = refusal ?? "\(error)"
        if configuration.logging.format == .json {
            let logger = log.logger(label: "hermesd")
            for line in reason.split(separator: "\n") {
                logger.critical(
                    "\(LogFormat.fatalMessage)", metadata: [LogFormat.explanationKey: "\(line)"])
            }
        }
        log.flush()
        if configuration.logging.format == .text { Self.say(refusal ?? "hermesd: \(reason)") }
    }

    private var loader: ConfigurationLoader {
        var overrides = CommandLineOverrides()
        overrides.ports = port
        overrides.dataDirectory = dataDirectory
        overrides.adminPort = adminPort
        overrides.passwordFile = passwordFile
        overrides.aclFile = aclFile
        overrides.allowAnonymous = allowAnonymous
        overrides.maxInFlight = maxInFlight
        overrides.maxPacket = maxPacket
        overrides.connectTimeout = connectTimeout
        overrides.queueMessages = queueMessages
        overrides.durability = durability
        overrides.loggingLevel = loggingLevel
        return ConfigurationLoader(
            source: config.map { .file($0) } ?? .none, environment: ProcessEnvironment.current(),
            overrides: overrides)
    }

    /// Says the mistakes of a configuration, before there is a log, in its format.
    private static func say(_ error: ConfigurationError, isJSON: Bool) {
        guard isJSON else { return say("\(error)") }
        for line in "\(error)".split(separator: "\n") {
            let bytes = LogFormat.fatalLine(String(line))
            say(String(decoding: bytes.dropLast(), as: UTF8.self))
        }
    }

    private static func say(_ text: String) {
        var line = [UInt8](text.utf8)
        line.append(0x0A)
        _ = write(STDERR_FILENO, line, line.count)
    }
}
