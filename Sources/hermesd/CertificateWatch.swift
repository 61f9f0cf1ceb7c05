import Glibc
import Logging
import PlainText
import TLS

/// Reloads changed certificates, and warns daily and at the start of files that expire soon.
///
/// It compares file stamps every five seconds. That costs microseconds and, unlike inotify, also
/// works when a renewal replaces a folder. A change counts once the files have been stable for a
/// second, so that a certificate is not read without its key. Files that cannot be used are tried
/// again each time and logged once.
struct CertificateWatch {
    private static let interval = Duration.seconds(5)
    private static let settling = Duration.seconds(1)
    /// Seconds before expiry from which the log warns; renewal tools act 30 days ahead.
    private static let warningSeconds: Int64 = 14 * secondsOfDay
    private static let secondsOfDay: Int64 = 86_400

    private let certificates: Certificates
    private let logger: Logger
    private var nextReminder: Int64 = 0

    init(_ certificates: Certificates, logger: Logger) {
        self.certificates = certificates
        self.logger = logger
    }

    /// Runs until cancelled. `use` installs new certificates and returns false on failure.
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

    /// Warns of each file that expires soon.
    private mutating func remind() {
        let now = Int64(time(nil))
        nextReminder = now + Self.secondsOfDay
        for context in certificates.contexts {
            for ending in context?.endings ?? [] {
                let listener = context?.settings.place ?? ""
                if let begins = ending.begins, begins > now {
                    logger.error(
                        "\(ending.noun.rawValue) is not valid yet",
                        metadata: [
                            "file": "\(ending.file)", "listener": "\(listener)",
                            "valid_from": "\(UTCTime(clamping: begins))",
                            "cure":
                                "clients refuse it until then: give one that is valid, or set the clock",
                        ])
                }
                guard ending.time - now < Self.warningSeconds else { continue }
                remind(of: ending, listener: listener, at: now)
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
