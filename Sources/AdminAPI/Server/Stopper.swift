import HummingbirdCore
import Logging
import OperatorLog
import Synchronization

/// Stops the listeners once, at the first request.
final class Stopper: Sendable {
    private let listeners: [Server<AdminChildChannel>]
    private let executor: EventLoopTaskExecutor
    private let logger: Logger
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(
        _ listeners: [Server<AdminChildChannel>], executor: EventLoopTaskExecutor, logger: Logger
    ) {
        self.listeners = listeners
        self.executor = executor
        self.logger = logger
    }

    /// Begins to stop, without waiting.
    func start() {
        task.withLock { task in
            if task == nil { task = Task(executorPreference: executor) { await self.stop() } }
        }
    }

    /// Stops accepting, and waits for requests in progress.
    func stop() async {
        for listener in listeners {
            do {
                try await listener.shutdownGracefully()
            } catch {
                logger.warning(
                    "Admin listener did not stop cleanly",
                    metadata: [LogKeys.adminReason: "\(error)"])
            }
        }
    }

    /// Waits for the end of the stop.
    func finish() async {
        await task.withLock { $0 }?.value
    }
}
