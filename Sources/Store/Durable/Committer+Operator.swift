/// What an operator asks the store for.
extension Committer {
    /// What cannot be renamed is damage still.
    func acceptLoss() -> [String] {
        var accepted = journal.acceptLoss()
        if let path = try? StoredDamage.acceptRecords(in: directory) { accepted.append(path) }
        if let left = try? StoredDamage(in: directory) {
            outbox.update { $0.damageRecords = left.records }
        }
        noteSegments()
        return accepted
    }

    /// Lets the mover copy the database once it has all that is stored now.
    func backUp(
        to directory: String, _ reply: @escaping @Sendable (StoreFailure?) -> Void
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
        movers.post(.backup(directory: directory, reply: reply))
    }
}
