import Glibc
import Logging
import TLS

/// Reads certificates again when their files change. At the start and once a day it warns of files
/// that expire soon.
///
/// It compares the files' stamps every five seconds, which costs a few microseconds and, unlike a
/// watch, also works when a renewal replaces a whole folder. A change counts once a second has
/// passed without another one, so that a certificate is not read without its key. Files that could
/// not be used are tried again every time, and the log says so once.
struct CertificateWatch {
    private static let interval = Duration.seconds(5)
    private static let settling = Duration.seconds(1)
    /// Seconds before expiry from which the log warns. Tools that renew by themselves do so 30 days
    /// ahead, so at 14 days something is wrong.
    private static let warningSeconds: Int64 = 14 * secondsOfDay
    private static let secondsOfDay: Int64 = 86_400

    private let certificates: Certificates
    private let logger: Logger
    private var nextReminder: Int64 = 0

    init(_ certificates: Certificates, logger: Logger) {
        self.certificates = certificates
        self.logger = logger
    }

    /// Watches until the task is cancelled. `use` puts new certificates into use; false when it
    /// could not.
    mutating func run(_ use: @Sendable (Certificates.Read) -> Bool) async {
        remind()
        while (try? await Task.sleep(for: Self.interval)) != nil {
            await look(use)
            if Int64(time(nil)) >= nextReminder { remind() }
        }
    }

    private mutating func look(_ use: @Sendable (Certificates.Read) -> Bool) async {
        var stamps = certificates.stamps
        guard certificates.areDue(stamps) else { return }
        while true {
            guard (try? await Task.sleep(for: Self.settling)) != nil else { return }
            let now = certificates.stamps
            guard now != stamps else { break }
            stamps = now
        }
        do throws(TLSProblems) {
            let read = try certificates.read()
            guard use(read) else { return }
            logger.notice(
                "TLS files have changed, new connections use them", metadata: Self.names(read))
            remind()
        } catch {
            guard certificates.refuse(stamps, error) else { return }
            for problem in error.problems {
                logger.error(
                    "TLS files unusable, those read before stay in use",
                    metadata: ["problem": "\(problem)"])
            }
        }
    }

    private static func names(_ read: Certificates.Read) -> Logger.Metadata {
        let files = read.contexts.flatMap { $0?.certificates.map(\.file) ?? [] }
        return ["files": "\(files.joined(separator: " "))"]
    }

    /// Warns of all files that expire soon.
    private mutating func remind() {
        let now = Int64(time(nil))
        nextReminder = now + Self.secondsOfDay
        for context in certificates.contexts {
            for ending in context?.endings ?? [] where ending.time - now < Self.warningSeconds {
                remind(of: ending, listener: context?.settings.place ?? "", at: now)
            }
        }
    }

    private func remind(of ending: TLSContext.Ending, listener: String, at now: Int64) {
        var metadata: Logger.Metadata = [
            "file": "\(ending.file)", "listener": "\(listener)", "cure": "\(ending.cure)",
        ]
        if ending.time <= now {
            logger.error("\(ending.noun.rawValue) is over", metadata: metadata)
        } else {
            metadata["days_left"] = "\((ending.time - now) / Self.secondsOfDay)"
            logger.warning("\(ending.noun.rawValue) ends soon", metadata: metadata)
        }
    }
}
