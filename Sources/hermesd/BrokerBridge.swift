import AdminAPI
import BanFiles
import BrokerAPI
import BrokerRuntime
import Store

/// Passes commands of the admin plane to the shard, and asks the store.
struct BrokerBridge: BrokerControl {
    let broker: BrokerThread
    /// `nil` with `durability: none`.
    let operations: (any StoreOperations)?

    func send(_ command: BrokerCommand) { broker.send(command) }

    var process: ProcessFigures { .read() }

    var store: StoreStatus? { operations.map { StoreStatus($0.figures) } }

    var isDraining: Bool { broker.isDraining }

    func acceptLoss() async -> [String] {
        guard let store = operations else { return [] }
        return await withCheckedContinuation { continuation in
            store.acceptLoss { continuation.resume(returning: $0) }
        }
    }

    func backUp(to directory: String, bans: [UInt8]?) async throws(BackupFailure) {
        guard let store = operations else { throw .nothingStored }
        let files = bans.map { [BackupFile(name: BanFile.name, contents: $0)] } ?? []
        let failure = await withCheckedContinuation { continuation in
            store.backup(to: directory, with: files) { continuation.resume(returning: $0) }
        }
        guard let failure else { return }
        switch failure.kind {
        case .outOfSpace: throw .outOfSpace("\(failure)")
        case .other, .permissions: throw .unusableFolder("\(failure)")
        case .inputOutput, .damaged, .newerFormat, .locked: throw .failed("\(failure)")
        }
    }
}

extension StoreStatus {
    fileprivate init(_ figures: StoreFigures) {
        self.init()
        notReadyReason = figures.notReadyReason
        commits = figures.commits
        committedBytes = figures.committedBytes
        failures = figures.failures
        syncMicroseconds = figures.syncMicroseconds
        longestSyncMicroseconds = figures.longestSyncMicroseconds
        longestCommitMicroseconds = figures.longestCommitMicroseconds
        commitTimes = figures.commitTimes
        syncTimes = figures.syncTimes
        movedSegments = figures.movedSegments
        movedMessages = figures.movedMessages
        correctedPages = figures.correctedPages
        waitingSegments = figures.waitingSegments
        journalBytes = figures.journalBytes
        databaseBytes = figures.databaseBytes
        freeBytes = figures.freeBytes
        damage = figures.setAsideFiles + figures.damageRecords
        backupPercent = figures.backupPercent
        isFull = figures.isBelowReserve || figures.failure?.kind == .outOfSpace
    }
}
