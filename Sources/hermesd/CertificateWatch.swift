import Credentials
import Glibc
import Logging
import TLS

/// Has certificates read again when their files change, and says at the start and once a day which of
/// them end soon.
///
/// It looks at the files' times every five seconds, which costs a few microseconds and needs no watch
/// on folders that a renewal replaces. A change counts once a second has passed without another one, so
/// that a certificate is not read without its key. Files that are wrong are looked at again when they
/// change; when it was the system that could not read them, a second later.
struct CertificateWatch {
    private static let interval = Duration.seconds(5)
    private static let settling = Duration.seconds(1)
    private static let retry = Duration.seconds(1)
    /// Authorities that renew by themselves do it 30 days ahead: at 14 something does not work.
    private static let warningSeconds: Int64 = 14 * secondsOfDay
    private static let secondsOfDay: Int64 = 86_400

    private let certificates: Certificates
    private let logger: Logger
    /// Files that were refused are looked at again when they change.
    private var refused: [FileStamp?]?
    /// The files could not be read for want of descriptors or memory, which the log has said.
    private var isShort = false
    private var nextReminder: Int64 = 0

    init(_ certificates: Certificates, logger: Logger) {
        self.certificates = certificates
        self.logger = logger
    }

    /// Watches until the task is cancelled; `use` puts certificates to use.
    mutating func run(_ use: @Sendable (Certificates.Read) -> Void) async {
        remind()
        while (try? await Task.sleep(for: isShort ? Self.retry : Self.interval)) != nil {
            await look(use)
            if Int64(time(nil)) >= nextReminder { remind() }
        }
    }

    private mutating func look(_ use: @Sendable (Certificates.Read) -> Void) async {
        var stamps = certificates.stamps
        guard stamps != certificates.stampsInUse, stamps != refused else {
            isShort = false
            return
        }
        while true {
            guard (try? await Task.sleep(for: Self.settling)) != nil else { return }
            let now = certificates.stamps
            guard now != stamps else { break }
            stamps = now
        }
        do throws(TLSProblems) {
            let read = try certificates.read()
            use(read)
            refused = nil
            isShort = false
            logger.notice(
                "TLS files have changed, new connections use them", metadata: Self.names(read))
            remind()
        } catch {
            let wasShort = isShort
            isShort = error.problems.contains { $0.isTransient }
            refused = isShort ? nil : stamps
            guard !isShort || !wasShort else { return }
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

    /// Names all that end soon.
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
