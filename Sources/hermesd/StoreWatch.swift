import Logging
import Store

/// Logs once when storing fails and once when it works again. Reads the store's figures every
/// second, under the store's lock.
struct StoreWatch {
    private static let interval = Duration.seconds(1)

    private let logger: Logger
    private var failures: UInt64
    private var isFailing = false
    private var isHanging = false
    private var isBelowReserve = false
    private var isCongested = false
    private var isMoving = true

    /// Begins with the figures of a store that was just opened.
    init(logger: Logger, figures: StoreFigures) {
        self.logger = logger
        failures = figures.failures
    }

    /// Watches until the task is cancelled.
    mutating func run(_ figures: @Sendable () -> StoreFigures) async {
        repeat { look(at: figures()) } while (try? await Task.sleep(for: Self.interval)) != nil
    }

    private mutating func look(at figures: StoreFigures) {
        noteFailure(figures)
        if Self.change(&isHanging, figures.isHanging) {
            if isHanging {
                logger.error(
                    "Disk does not answer, acknowledgements wait",
                    metadata: [
                        "store.waiting_us": "\(figures.currentCommitMicroseconds)"
                    ])
            } else {
                logger.notice("Disk answers again")
            }
        }
        if Self.change(&isBelowReserve, figures.isBelowReserve) {
            if isBelowReserve {
                logger.error(
                    "Disk nearly full, new messages wait until there is room",
                    metadata: [
                        "store.free_bytes": "\(figures.freeBytes)", "setting": "disk_reserve",
                    ])
            } else {
                logger.notice(
                    "Disk has room again, new messages are stored",
                    metadata: ["store.free_bytes": "\(figures.freeBytes)"])
            }
        }
        if Self.change(&isCongested, figures.isCongested) {
            if isCongested {
                logger.warning(
                    "Database does not keep up, new messages wait",
                    metadata: ["store.waiting_segments": "\(figures.waitingSegments)"])
            } else {
                logger.notice("Database has caught up, new messages are stored")
            }
        }
        if Self.change(&isMoving, figures.moverFailure == nil) {
            if let failure = figures.moverFailure {
                logger.error(
                    "Journal cannot be moved to the database", metadata: ["error": "\(failure)"])
            } else {
                logger.notice("Journal is moved to the database again")
            }
        }
    }

    private mutating func noteFailure(_ figures: StoreFigures) {
        let hasFailed = figures.failures > failures
        failures = figures.failures
        if let failure = figures.failure {
            if !isFailing {
                logger.critical(
                    "Nothing can be stored, acknowledgements wait",
                    metadata: ["error": "\(failure)"])
            }
            isFailing = true
        } else if isFailing || hasFailed {
            // A failure between two looks is logged although it has ended.
            logger.warning(
                isFailing ? "Storing goes on" : "Storing failed for a moment, and goes on",
                metadata: ["store.failures": "\(figures.failures)"])
            isFailing = false
        }
    }

    /// Stores a state; true if it differs from the previous one.
    private static func change(_ state: inout Bool, _ now: Bool) -> Bool {
        defer { state = now }
        return state != now
    }
}
