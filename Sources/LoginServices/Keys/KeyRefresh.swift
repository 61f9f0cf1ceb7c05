import AdminTLS
import Logging
import Logins
import OperatorLog
import Synchronization

/// Keeps the keys of a login service up to date: fetches them at the start, at intervals, and when a
/// token names an unknown key. While the service fails, the last keys stay in use.
package final class KeyRefresh: Sendable {
    /// The least time between two fetches: so often do tokens with made-up names make the broker ask.
    static let leastInterval = Duration.seconds(10)
    /// The longest time until the next attempt after a failed one.
    private static let longestPause = Duration.seconds(60)

    private struct State {
        /// When the last attempt began; `nil` before the first.
        var lastAttempt: ContinuousClock.Instant?
        /// True while an attempt is made, and from the request for one.
        var isUnderWay = false
        /// The pause until the next attempt, whose cancellation ends it.
        var pause: Task<Void, Never>?
    }

    private let source: KeyURL
    private let authorities: KeyAuthorities?
    private let logger: Logger
    private let leastInterval: Duration
    private let state = Mutex(State())

    /// Reads the authorities' file at the start.
    package convenience init(_ source: KeyURL, logger: Logger) throws(PEMFile.Unusable) {
        self.init(source, authorities: try source.authorities(), logger: logger)
    }

    init(
        _ source: KeyURL, authorities: KeyAuthorities?, logger: Logger,
        leastInterval: Duration = KeyRefresh.leastInterval
    ) {
        self.source = source
        self.authorities = authorities
        self.logger = logger
        self.leastInterval = leastInterval
    }

    /// Asks for the keys before their time, because a token names an unknown one. Any thread may
    /// call it, as often as such tokens come.
    ///
    /// - Returns: True when an answer is awaited from now on, so that a client may try again soon;
    ///   false when the keys were fetched a short while ago.
    package func request() -> Bool {
        state.withLock { state in
            // Without an attempt so far, the first one is about to begin.
            guard !state.isUnderWay, let last = state.lastAttempt else { return true }
            guard ContinuousClock.now - last >= leastInterval else { return false }
            state.isUnderWay = true
            state.pause?.cancel()
            return true
        }
    }

    /// Fetches until the task is cancelled, and hands good keys to `use`, which returns false for
    /// those that are in use already.
    package func run(_ use: @Sendable (KeySet) -> Bool) async {
        await run(KeyFetch(source, authorities: authorities), use)
    }

    func run(_ fetch: some KeyFetching, _ use: @Sendable (KeySet) -> Bool) async {
        defer { fetch.close() }
        var log = KeyRefreshLog(logger, url: source.url)
        var failures = 0
        while !Task.isCancelled {
            state.withLock { state in
                state.isUnderWay = true
                state.lastAttempt = .now
            }
            let outcome = await attempt(fetch)
            // The shutdown cut the attempt off.
            guard !Task.isCancelled else { return }
            switch outcome {
            case .success(let keys):
                failures = 0
                log.succeeded(keys, isNew: use(keys))
            case .failure(let failure):
                failures += 1
                log.failed(failure.reason)
            }
            state.withLock { $0.isUnderWay = false }
            await pause(after: failures)
        }
    }

    private func attempt(_ fetch: some KeyFetching) async -> Result<KeySet, KeyFetchFailure> {
        switch await fetch.fetch() {
        case .failure(let failure): return .failure(failure)
        case .success(let document):
            do throws(KeySet.Malformed) {
                // What is published holds no secrets that could be trusted.
                return .success(try KeySet(document: document, allowsSecrets: false))
            } catch {
                return .failure(KeyFetchFailure(reason: error.reason))
            }
        }
    }

    /// Waits for the next attempt: the interval, or after failures a pause that grows, unless a token
    /// asks for it before.
    private func pause(after failures: Int) async {
        let backOff = min(leastInterval * (1 << min(failures, 8)) / 2, Self.longestPause)
        let time = failures == 0 ? source.refresh : min(backOff, source.refresh)
        let pause = Task { _ = try? await Task.sleep(for: time) }
        state.withLock { state in
            state.pause = pause
            // It was asked for meanwhile.
            if state.isUnderWay { pause.cancel() }
        }
        await withTaskCancellationHandler {
            await pause.value
        } onCancel: {
            pause.cancel()
        }
        state.withLock { $0.pause = nil }
    }
}

/// The log lines about fetched keys: one when fetching begins to fail, further ones at times, one
/// when it works again, and one for each change.
private struct KeyRefreshLog {
    /// Failures between two lines.
    private static let failuresPerLine = 60

    private let logger: Logger
    private let url: String
    private var failures = 0

    init(_ logger: Logger, url: String) {
        self.logger = logger
        self.url = url
    }

    mutating func failed(_ reason: String) {
        failures += 1
        guard failures % Self.failuresPerLine == 1 else { return }
        logger.warning(
            "Keys of the login service could not be fetched, those in use stay",
            metadata: [LogKeys.loginKeysURL: "\(url)", LogKeys.reason: "\(reason)"])
    }

    mutating func succeeded(_ keys: KeySet, isNew: Bool) {
        if failures > 0 {
            logger.notice(
                "Keys of the login service are fetched again",
                metadata: [LogKeys.loginKeysURL: "\(url)", LogKeys.loginKeys: "\(keys.keys.count)"])
        }
        failures = 0
        guard isNew else { return }
        var metadata: Logger.Metadata = [
            LogKeys.loginKeysURL: "\(url)", LogKeys.loginKeys: "\(keys.keys.count)",
        ]
        if !keys.skipped.isEmpty {
            metadata[LogKeys.hint] = "not used: \(keys.skipped.joined(separator: "; "))"
        }
        logger.info("Keys of the login service are new", metadata: metadata)
    }
}
