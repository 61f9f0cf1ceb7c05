/// Requests of the operator.
extension Committer {
    /// Accepts the loss of damaged files: renames them and returns the paths that they had. A file
    /// that cannot be renamed still counts as damage.
    func acceptLoss() -> [String] {
        var accepted = journal.acceptLoss()
        if let path = try? StoredDamage.acceptRecords(in: directory) { accepted.append(path) }
        if let left = try? StoredDamage(in: directory) {
            outbox.update { $0.damageRecords = left.records }
        }
        noteSegments()
        return accepted
    }

    /// Asks the mover to copy the database once it has everything that is stored now.
    func backUp(
        to directory: String, with files: [BackupFile],
        _ reply: @escaping @Sendable (StoreFailure?) -> Void
    ) {
        guard !isClosing else { return reply(MoverTask.stopping(directory)) }
        commit()
        guard waiting.isEmpty else {
            reply(
                outbox.figures.failure
                    ?? StoreFailure(
                        operation: "back up to", path: directory,
                        reason: "the database does not keep up with the journal at present",
                        kind: .other, cure: "Try again later."))
            return
        }
        do throws(StoreFailure) {
            if !overlay.isActiveEmpty || !unsynced.isEmpty { try beginSegment(1) }
        } catch {
            fail(error)
            return reply(error)
        }
        movers.post(.backup(directory: directory, files: files, reply: reply))
    }
}
