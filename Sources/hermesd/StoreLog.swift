import Logging
import Store

/// Logs the journal's content, a torn write and damage at the start.
struct StoreLog {
    let logger: Logger

    func logRecovery(_ recovery: DurableStore.Recovery) {
        let report = recovery.report
        if report.frameCount > 0 {
            logger.notice(
                "Journal of the last run read; it moves to the database in the background",
                metadata: [
                    "store.groups": "\(report.frameCount)", "store.bytes": "\(report.byteCount)",
                    "store.queued": "\(recovery.waitingMessages)",
                ])
        }
        if let tail = report.tornTail {
            logger.notice(
                "The last write was cut off by a crash, nothing of it was acknowledged",
                metadata: [
                    "file": "\(tail.path)", "file.offset": "\(tail.offset)",
                    "file.bytes": "\(tail.byteCount)",
                ])
        }
    }

    /// Logs damage found by this start or an earlier one, until an operator accepts the loss.
    func logDamage(in directory: String) {
        guard let damage = try? StoredDamage(in: directory) else { return }
        for line in damage.setAsideFiles + damage.records {
            logger.error(
                "Stored data was damaged, not ready until hermesctl store accept-loss",
                metadata: ["damage": "\(line)"])
        }
    }
}
