import Authorization
import BrokerRuntime
import Glibc
import Logging
import Synchronization
import SystemFiles

/// The ACL file, read at the start and at each reload.
final class AccessFile: Sendable {
    /// Attempts, 1 ms apart, to pass new rules to a full mailbox, which a turn empties.
    private static let tries = 5_000

    private let path: String
    private let logger: Logger
    /// The stamp of the file whose rules are in use.
    private let stamp = Mutex<FileStamp?>(nil)

    init(path: String, logger: Logger) {
        self.path = path
        self.logger = logger
    }

    /// Reads and checks the file for the start of the broker.
    func start() throws(AccessRulesError) -> AccessRules {
        let stamp = FileStamp(of: path)
        let rules = try AccessRules.load(path: path)
        take(rules, stamp, "ACL file read")
        return rules
    }

    /// The ACL file's part in a reload; if the file cannot be used, the old rules stay.
    func part(_ broker: BrokerThread) -> Reload.Part {
        Reload.Part(name: "ACL file") { [self] in
            let stamp = FileStamp(of: path)
            let rules = try AccessRules.load(path: path)
            let isNew = stamp != self.stamp.withLock { $0 }
            return Reload.Prepared(changed: isNew ? "acl_file" : nil) { [self] in
                guard hand(rules, to: broker) else { return false }
                take(rules, stamp, isNew ? "ACL file read again" : nil)
                return true
            }
        }
    }

    private func hand(_ rules: AccessRules, to broker: BrokerThread) -> Bool {
        for _ in 0..<Self.tries {
            if broker.tell(.access(rules)) { return true }
            usleep(1_000)
        }
        logger.critical(
            "The broker does not take the new access rules, the former ones still apply; send SIGHUP again"
        )
        return false
    }

    /// Notes that these rules are in use, and logs `news` and warnings.
    private func take(_ rules: AccessRules, _ stamp: FileStamp?, _ news: Logger.Message?) {
        self.stamp.withLock { $0 = stamp }
        if let warning = rules.accessWarning {
            logger.warning("ACL file can be changed by others", metadata: ["problem": "\(warning)"])
        }
        if let news {
            logger.info(
                news, metadata: ["file": "\(path)", "acl.rules": "\(rules.rules.count)"])
        }
        if rules.rules.isEmpty {
            logger.warning(
                "ACL file holds no rule, everything is denied", metadata: ["file": "\(path)"])
        }
    }
}
