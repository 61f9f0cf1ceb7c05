import Authorization
import BrokerAPI
import Glibc
import Logging
import OperatorLog
import Store
import Synchronization
import SystemFiles
import Threads
import Transport

/// The thread that runs the loop of a broker, and the mailbox by which other threads reach it.
package final class BrokerThread: Sendable {
    private enum State {
        case running(waiters: [CheckedContinuation<Void, any Error>])
        case ended(Result<Void, any Error>)
    }

    private static let name = "hermes-shard-0"
    /// Messages that may wait for the loop; commands beyond it are refused.
    private static let mailboxCapacity = 16_384

    private let mailbox: Mailbox<ShardMessage>
    private let drainSign = DrainSign()
    private let state = Mutex(State.running(waiters: []))

    package init() throws(SystemError) {
        mailbox = try Mailbox(capacity: Self.mailboxCapacity)
    }

    /// Starts the thread; returns the addresses once the listeners accept.
    ///
    /// - Throws: The error of
    ///   ``BrokerLoop/init(settings:store:mailbox:logins:access:bans:identity:drainSign:logger:)``,
    ///   or `ThreadFailure`.
    package func start(
        settings: BrokerSettings, store: any Store, logins: LoginCheck?,
        access: AccessRules?, bans: BanTable?, identity: BrokerLoop.Identity, logger: Logger
    ) throws -> [String] {
        let started = try WorkQueue<Result<[String], any Error>>(name: Self.name)
        // The caller gives the store away: from here on only the new thread uses it, and the start
        // of a thread comes after all that the caller did.
        nonisolated(unsafe) let store = store
        try WorkerThread.start(name: Self.name, urgency: .prompt) { [self] in
            do {
                var loop = try BrokerLoop(
                    settings: settings, store: store, mailbox: mailbox, logins: logins,
                    access: access, bans: bans, identity: identity, drainSign: drainSign,
                    logger: logger)
                for (address, listener) in zip(loop.listenerAddresses, settings.listeners) {
                    logger.info(
                        "MQTT listener ready",
                        metadata: [
                            LogKeys.listener: "\(address)",
                            LogKeys.listenerProtocol:
                                listener.webSocket == nil ? "mqtt" : "websocket",
                            LogKeys.listenerTLS: listener.tls == nil ? "off" : "on",
                            LogKeys.listenerAnonymous: "\(listener.allowsAnonymous)",
                        ])
                }
                started.post(.success(loop.listenerAddresses))
                try loop.run()
                end(.success(()))
                #if HERMES_UNPOOLED
                    // Else a leak checker takes for lost what the broker holds at its end. Used
                    // again, the loop lives on.
                    repeat { pause() } while !loop.listenerAddresses.contains("")
                #endif
            } catch {
                started.post(.failure(error))
                end(.failure(error))
            }
        }
        // The first report holds the addresses of the listeners, or the failure.
        guard let report = started.takeAll()?.first else {
            preconditionFailure("the broker's thread ended without a report")
        }
        return try report.get()
    }

    /// Passes a command of the admin plane to the shard, or refuses it.
    package func send(_ command: BrokerCommand) {
        switch mailbox.post(.command(command), isUrgent: command.isUrgent) {
        case .accepted: return
        case .full: command.refuse(.overloaded)
        case .closed: command.refuse(.stopping)
        }
    }

    /// Passes an urgent message to the loop. False when the mailbox is full; a turn empties it.
    package func tell(_ message: ShardMessage) -> Bool {
        mailbox.post(message, isUrgent: true) != .full
    }

    /// True while an operator moves the clients elsewhere.
    package var isDraining: Bool { drainSign.isSet }

    /// Begins a turn, for instance because the store has completed a commit.
    package func wake() { mailbox.wake() }

    /// Waits for the thread's end; throws its error unless it ended by a shutdown.
    package func wait() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let outcome: Result<Void, any Error>? = state.withLock { state in
                switch state {
                case .running(let waiters):
                    state = .running(waiters: waiters + [continuation])
                    return nil
                case .ended(let outcome): return outcome
                }
            }
            if let outcome { continuation.resume(with: outcome) }
        }
    }

    private func end(_ outcome: Result<Void, any Error>) {
        let waiters = state.withLock { state in
            defer { state = .ended(outcome) }
            if case .running(let waiters) = state { return waiters }
            return []
        }
        for waiter in waiters { waiter.resume(with: outcome) }
    }
}
