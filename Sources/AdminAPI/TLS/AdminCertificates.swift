import BrokerAPI
import AdminTLS
import Glibc
import Logging
import NIOSSL
import Synchronization
import SystemFiles

/// The certificate that new HTTPS connections get.
///
/// Its files are read at the start, at SIGHUP, and at the next connection after a file has changed.
/// Files that have become unusable leave the former certificate in use. Open connections keep
/// theirs.
package final class AdminCertificates: Sendable {
    /// The certificate from one state of the files.
    package struct Certificate: Sendable {
        fileprivate var context: NIOSSLContext
        fileprivate var stamps: [FileStamp?]
        /// The UNIX time at which it expires.
        fileprivate var expires: Int64
    }

    private struct State {
        var certificate: Certificate
        var files: WatchedFiles<[FileStamp?]>
        /// The UNIX time from which the log may warn of the expiry again.
        var nextWarning: Int64 = 0

        init(_ certificate: Certificate) {
            self.certificate = certificate
            files = WatchedFiles(inUse: certificate.stamps)
        }
    }

    /// Days before expiry from which the log warns daily.
    private static let warningDays: Int64 = 14
    private static let secondsOfDay: Int64 = 86_400

    private let settings: AdminTLSSettings
    private let logger: Logger
    private let state: Mutex<State>

    /// Reads the files at the start; any problem is an error.
    package init(_ settings: AdminTLSSettings, logger: Logger) throws(AdminTLSUnusable) {
        self.settings = settings
        self.logger = logger
        state = Mutex(State(try Self.load(settings)))
        state.withLock { warnOfEnd(&$0) }
    }

    /// Reads the files, for ``use(_:)``.
    package func read() throws(AdminTLSUnusable) -> Certificate { try Self.load(settings) }

    package func use(_ certificate: Certificate) {
        state.withLock { state in
            state = State(certificate)
            warnOfEnd(&state)
        }
    }

    /// True when the files differ from those in use.
    package func isChanged(by certificate: Certificate) -> Bool {
        state.withLock { $0.files.isChanged(by: certificate.stamps) }
    }

    /// The certificate in use, for the metrics.
    var figures: AdminFigures.Certificate {
        let end = state.withLock { $0.certificate.expires }
        return AdminFigures.Certificate(
            file: settings.certificate,
            daysLeft: Double(end - Int64(time(nil))) / Double(Self.secondsOfDay), expiresAt: end)
    }

    /// The TLS context for a new connection. Costs two or three looks at file stamps.
    func context() -> NIOSSLContext {
        let stamps = settings.files.map { FileStamp(of: $0) }
        return state.withLock { state in
            if state.files.isDue(stamps, at: .now) { readAgain(stamps, &state) }
            warnOfEnd(&state)
            return state.certificate.context
        }
    }

    private func readAgain(_ stamps: [FileStamp?], _ state: inout State) {
        do throws(AdminTLSUnusable) {
            state = State(try Self.load(settings))
            logger.info(
                "Admin certificate read again", metadata: ["file": "\(settings.certificate)"])
        } catch {
            // A renewal replaces the files one by one, so they may not match yet.
            guard state.files.refuse(stamps, "\(error)", at: .now) else { return }
            for problem in error.problems {
                logger.error(
                    "Admin certificate unusable, the old one stays",
                    metadata: ["problem": "\(problem)"])
            }
        }
    }

    private static func load(
        _ settings: AdminTLSSettings
    ) throws(AdminTLSUnusable) -> Certificate {
        let stamps = settings.files.map { FileStamp(of: $0) }
        let loaded = try AdminTLSLoader.load(settings)
        return Certificate(context: loaded.context, stamps: stamps, expires: loaded.expires)
    }

    private func warnOfEnd(_ state: inout State) {
        let now = Int64(time(nil))
        let left = state.certificate.expires - now
        guard left < Self.warningDays * Self.secondsOfDay, now >= state.nextWarning else { return }
        state.nextWarning = now + Self.secondsOfDay
        logger.log(
            level: left > 0 ? .warning : .error,
            left > 0 ? "Admin certificate ends soon" : "Admin certificate is over",
            metadata: [
                "file": "\(settings.certificate)", "days_left": "\(left / Self.secondsOfDay)",
                "cure": "put a new one in its place; the next connection gets it",
            ])
    }
}
