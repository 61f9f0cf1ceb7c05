import Credentials
import Glibc
import ListenerTLS
import OperatorConfiguration
import TLS

/// Loads the TLS files of a configuration as the broker does, for `config check`.
struct TLSFileCheck {
    /// From here on, what ends is warned about, as the broker does.
    private static let warningSeconds: Int64 = 14 * 86_400

    /// What is wrong, a line each.
    private(set) var problems: [String] = []
    /// What ends soon, a line each.
    private(set) var warnings: [String] = []

    init(_ configuration: HermesConfiguration) {
        let tickets = TicketKeys()
        let now = Int64(time(nil))
        for settings in configuration.listenersTLS + [TLSSettings(configuration.admin.tls)] {
            guard let settings else { continue }
            do throws(TLSProblems) {
                for ending in try TLSContext(settings, tickets: tickets).endings {
                    judge(ending, at: now)
                }
            } catch {
                problems += error.problems.map(\.description)
            }
        }
    }

    /// A broker starts with what is over, so that the rest of it serves; its clients do not get in.
    private mutating func judge(_ ending: TLSContext.Ending, at now: Int64) {
        guard ending.time < now + Self.warningSeconds else { return }
        let place = "\(ending.key): \"\(VisibleText.escaped(ending.file))\""
        let cure = "\(ending.cure.prefix(1).uppercased())\(ending.cure.dropFirst())."
        if ending.time <= now {
            problems.append("\(place) is over since \(UTCTime(clamping: ending.time)). \(cure)")
        } else {
            warnings.append(
                "warning: \(place) ends on \(UTCTime(clamping: ending.time)). \(cure)")
        }
    }
}
