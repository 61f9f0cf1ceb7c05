import Logging
import OperatorConfiguration
import TLS

/// The certificates of all listeners: read at the start, and again when they change.
final class Certificates: Sendable {
    /// By listener; `nil` for one that serves plain TCP.
    private let settings: [TLSSettings?]
    private let tickets = TicketKeys()
    private let logger: Logger

    init(_ configuration: HermesConfiguration, logger: Logger) {
        settings = configuration.listeners.enumerated().map { index, listener in
            TLSSettings(listener.tls, listener: index)
        }
        self.logger = logger
    }

    /// Reads all files; everything that is wrong with them comes together.
    func load() throws(TLSProblems) -> [TLSContext?] {
        var contexts: [TLSContext?] = []
        var problems: [TLSProblem] = []
        for settings in settings {
            guard let settings else {
                contexts.append(nil)
                continue
            }
            do throws(TLSProblems) {
                contexts.append(try TLSContext(settings, tickets: tickets))
            } catch {
                problems += error.problems
            }
        }
        guard problems.isEmpty else { throw TLSProblems(problems: problems) }
        return contexts
    }
}
