import Authorization
import Broker
import Glibc
import Logging
import Reactor

/// The file of access rules: read at the start, and again at each reload.
struct AccessFile: Sendable {
    /// Tries, a millisecond apart, to hand new rules to a broker whose mailbox is full: that is worked
    /// off within a turn.
    private static let tries = 5_000

    let path: String
    let logger: Logger

    /// Reads and checks all of it.
    func read() throws(AccessRulesError) -> AccessRules {
        let rules = try AccessRules.load(path: path)
        if let warning = rules.accessWarning {
            logger.warning("ACL file can be changed by others", metadata: ["file": "\(warning)"])
        }
        logger.info(
            "ACL file read", metadata: ["file": "\(path)", "acl.rules": "\(rules.rules.count)"])
        return rules
    }

    /// What a reload does: rules that cannot be read leave those in use.
    func part(_ mailbox: Mailbox<ShardMessage>) -> Reload.Part {
        Reload.Part(name: "ACL file") {
            let rules = try read()
            return {
                for _ in 0..<Self.tries {
                    guard mailbox.post(.access(rules), isUrgent: true) == .full else { return }
                    usleep(1_000)
                }
                logger.critical(
                    "The broker does not take the new access rules, the former ones still apply; send SIGHUP again"
                )
            }
        }
    }
}
