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

    let path: String
    private let logger: Logger
    /// What is in use. It is held while rules are handed to the broker, so that older ones never
    /// follow newer ones.
    private struct InUse {
        var stamp: FileStamp?
        /// Counts the changes.
        var generation = 0
    }

    private let inUse = Mutex(InUse())

    init(path: String, logger: Logger) {
        self.path = path
        self.logger = logger
    }

    /// Reads and checks the file for the start of the broker.
    func start() throws(AccessRulesError) -> AccessRules {
        let stamp = FileStamp(of: path)
        let rules = try AccessRules.load(path: path)
        inUse.withLock { take(rules, stamp, "ACL file read", &$0) }
        return rules
    }

    /// Reads the file and puts its rules into force; returns their number, or `nil` when the broker
    /// is too busy.
    func putInForce(_ broker: BrokerThread) throws(AccessRulesError) -> Int? {
        try inUse.withLock { (inUse) throws(AccessRulesError) in
            let stamp = FileStamp(of: path)
            let rules = try AccessRules.load(path: path)
            guard hand(rules, to: broker) else { return nil }
            take(rules, stamp, stamp != inUse.stamp ? "ACL file read again" : nil, &inUse)
            return rules.rules.count
        }
    }

    /// The ACL file's part in a reload; if the file cannot be used, the old rules stay.
    func part(_ broker: BrokerThread) -> Reload.Part {
        Reload.Part(name: "ACL file", setting: "acl_file") { [self] in
            let generation = inUse.withLock { $0.generation }
            let stamp = FileStamp(of: path)
            let rules = try AccessRules.load(path: path)
            let isNew = stamp != inUse.withLock { $0.stamp }
            return Reload.Prepared(changed: isNew ? "acl_file" : nil) { [self] in
                inUse.withLock { inUse in
                    // Meanwhile the file was changed over HTTP, and its rules are in force.
                    guard inUse.generation == generation else { return true }
                    guard hand(rules, to: broker) else { return false }
                    take(rules, stamp, isNew ? "ACL file read again" : nil, &inUse)
                    return true
                }
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
    private func take(
        _ rules: AccessRules, _ stamp: FileStamp?, _ news: Logger.Message?, _ inUse: inout InUse
    ) {
        inUse.stamp = stamp
        inUse.generation += 1
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
