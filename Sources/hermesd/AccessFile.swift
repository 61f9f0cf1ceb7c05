import Authorization
import BrokerRuntime
import Credentials
import Glibc
import Logging
import Synchronization
import Transport

/// The file of access rules: read at the start, and again at each reload.
final class AccessFile: Sendable {
    /// Tries, a millisecond apart, to hand new rules to a broker whose mailbox is full: that is worked
    /// off within a turn.
    private static let tries = 5_000

    private let path: String
    private let logger: Logger
    /// Of the file as it is in use.
    private let stamp = Mutex<FileStamp?>(nil)

    init(path: String, logger: Logger) {
        self.path = path
        self.logger = logger
    }

    /// Reads and checks all of it for the start of the broker.
    func start() throws(AccessRulesError) -> AccessRules {
        let stamp = FileStamp(of: path)
        let rules = try AccessRules.load(path: path)
        take(rules, stamp, "ACL file read")
        return rules
    }

    /// What a reload does: rules that cannot be read leave those in use.
    func part(_ mailbox: Mailbox<ShardMessage>) -> Reload.Part {
        Reload.Part(name: "ACL file") { [self] in
            let stamp = FileStamp(of: path)
            let rules = try AccessRules.load(path: path)
            let isNew = stamp != self.stamp.withLock { $0 }
            return Reload.Prepared(changed: isNew ? "acl_file" : nil) { [self] in
                guard hand(rules, to: mailbox) else { return false }
                take(rules, stamp, isNew ? "ACL file read again" : nil)
                return true
            }
        }
    }

    private func hand(_ rules: AccessRules, to mailbox: Mailbox<ShardMessage>) -> Bool {
        for _ in 0..<Self.tries {
            guard mailbox.post(.access(rules), isUrgent: true) == .full else { return true }
            usleep(1_000)
        }
        logger.critical(
            "The broker does not take the new access rules, the former ones still apply; send SIGHUP again"
        )
        return false
    }

    /// They are in use from now on; says what the operator should know of them.
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
