import BrokerAPI
import BrokerCore
import Logging
import MQTTCore
import OperatorLog
import Structures
import TLS
import Transport

/// Turns notices of the shard into log lines, each event once, rate-limited.
struct NoticeLog {
    private let logger: Logger
    /// By statement and reason, so that one kind does not hide another.
    private var violations: [String: LogLimiter] = [:]
    private var refusals: [String: LogLimiter] = [:]
    private var closings: [String: LogLimiter] = [:]
    private var handshakes: [String: LogLimiter] = [:]
    private var addresses: [Limit: LogLimiter] = [:]
    private var drops = LogLimiter(intervalMilliseconds: 1_000)
    private var access = AccessLog()
    private var descriptors = LogLimiter()
    private var storeBehind = LogLimiter(intervalMilliseconds: 10_000)

    private static var limiter: LogLimiter { LogLimiter(intervalMilliseconds: 1_000) }

    init(logger: Logger) { self.logger = logger }

    var wantsLifecycle: Bool { logger.logLevel <= .debug }

    /// Asks the reactor for the connection's address, a system call, only for lines that are
    /// written.
    mutating func log(_ notice: BrokerNotice, in reactor: borrowing Reactor, now: MonotonicTime) {
        switch notice {
        case .opened(let handle, let identifier, let cleanSession, let sessionPresent):
            let address = wantsLifecycle ? reactor.address(of: handle) : ""
            logger.debug(
                "Client connected",
                metadata: [
                    LogKeys.connection: "\(handle.index)", LogKeys.address: "\(address)",
                    LogKeys.client: Self.text(identifier),
                    LogKeys.cleanSession: "\(cleanSession)",
                    LogKeys.sessionPresent: "\(sessionPresent)",
                ])
        case .closed(let handle, let identifier, let reason, let opening):
            logClosed(handle, identifier, reason, opening, reactor, now)
        case .refused(let handle, let identifier, let userName, let reason):
            var metadata: Logger.Metadata = [
                LogKeys.connection: "\(handle.index)", LogKeys.client: Self.text(identifier),
                LogKeys.reason: "\(reason.name)",
            ]
            if let userName { metadata[LogKeys.user] = Self.text(userName) }
            if let setting = reason.setting { metadata[LogKeys.setting] = "\(setting)" }
            admit(&refusals[reason.name, default: Self.limiter], now, metadata, handle, reactor) {
                logger, metadata in
                logger.notice("Connection refused", metadata: metadata)
            }
        case .dropping(let identifier, .reservedTopic):
            admit(
                &violations["reserved topic", default: Self.limiter], now,
                [LogKeys.client: Self.text(identifier)]
            ) { logger, metadata in
                logger.notice(
                    "Messages below $SYS/ or $CONTROL/ dropped, no client publishes there",
                    metadata: metadata)
            }
        case .dropping(let identifier, let reason):
            var metadata: Logger.Metadata = [
                LogKeys.client: Self.text(identifier), LogKeys.reason: "\(reason.name)",
            ]
            switch reason {
            case .queueFull:
                metadata[LogKeys.setting] = Self.settings(.queueMessages, .queueBytes)
            case .slowReader: metadata[LogKeys.setting] = Self.settings(.outputBytes)
            case .away, .expired, .reservedTopic, .byOperator, .notAllowed: break
            }
            admit(&drops, now, metadata) { logger, metadata in
                logger.warning("Messages dropped", metadata: metadata)
            }
        case .sessionExpired(let identifier):
            logger.debug("Session expired", metadata: [LogKeys.client: Self.text(identifier)])
        case .subscriptionRefused(let identifier, let limit):
            admit(
                &drops, now,
                [LogKeys.client: Self.text(identifier), LogKeys.setting: Self.settings(limit)]
            ) { logger, metadata in
                logger.notice("Subscription refused at a limit", metadata: metadata)
            }
        case .notRetained(let topic, let limit):
            admit(
                &drops, now,
                [LogKeys.topic: Self.text(topic), LogKeys.setting: Self.settings(limit)]
            ) { logger, metadata in
                logger.warning("Message not retained, a limit is reached", metadata: metadata)
            }
        case .takeOverDelayed(let report): logTakeOverDelayed(report, peers: [], now: now)
        case .access(let report): access.log(report, logger, now: now)
        case .unreadable(let identifier, let failure):
            logger.error(
                "Queue could not be read, connection closed",
                metadata: [LogKeys.client: Self.text(identifier), LogKeys.error: "\(failure)"])
        case .unreadableEnded(let identifier, let failure):
            logger.error(
                "Queue of an ended session could not be read, its shared messages wait for a restart",
                metadata: [LogKeys.client: Self.text(identifier), LogKeys.error: "\(failure)"])
        case .awaitsStore(let handle, let identifier):
            var metadata: Logger.Metadata = [LogKeys.connection: "\(handle.index)"]
            if let identifier { metadata[LogKeys.client] = Self.text(identifier) }
            logger.debug("Client waits until the store takes more", metadata: metadata)
        case .storeBehind(let bytes):
            admit(&storeBehind, now, [LogKeys.bytesWaiting: "\(bytes)"]) { logger, metadata in
                logger.warning(
                    "The disk is too slow, clients that want more stored wait", metadata: metadata)
            }
        case .paused(let handle, let identifier, let isPaused):
            logger.debug(
                isPaused ? "Publisher paused" : "Publisher resumed",
                metadata: [
                    LogKeys.connection: "\(handle.index)", LogKeys.client: Self.text(identifier),
                    LogKeys.setting:
                        Self.settings(.maxUnacknowledgedPublishes, .maxUnacknowledgedBytes),
                ])
        }
    }

    /// The keys of limits, or why there are none.
    private static func settings(_ limits: Limit...) -> Logger.MetadataValue {
        "\(limits.map(setting).joined(separator: ", "))"
    }

    private static func setting(_ limit: Limit) -> String {
        switch limit {
        case .openFiles: "the open files limit (ulimit -n)"
        case .sharedFilter: "none: a shared subscription has the form $share/group/filter"
        case .subscribeFilters:
            """
            none: of one SUBSCRIBE, \(SubscribeRefusals.maxFilters) filters are looked at, and none \
            behind \(SubscribeRefusals.maxRefusals) refused ones, or behind a look at \
            \(SubscribeRefusals.maxRuleSteps) access rules
            """
        default: limit.key ?? "none: \(limit.name)"
        }
    }

    /// Forgets known denials, because the access rules have changed.
    mutating func forgetAccess() { access = AccessLog() }

    /// Logs connections closed for lack of descriptors or at `limits.max_connections`.
    mutating func logTurnedAway(_ limit: Limit, now: MonotonicTime) {
        logTurnedAway(Self.setting(limit), now: now)
    }

    /// `setting` is the key that raises the limit.
    mutating func logTurnedAway(_ setting: String, now: MonotonicTime) {
        admit(&descriptors, now, [LogKeys.setting: "\(setting)"]) { logger, metadata in
            logger.warning("New connections refused, none is left", metadata: metadata)
        }
    }

    /// Logs a new connection closed because its address has reached a limit.
    mutating func logAddressTurnedAway(_ limit: Limit, _ peer: PeerAddress, now: MonotonicTime) {
        guard
            case .log(let suppressed) = addresses[limit, default: Self.limiter]
                .admit(atMilliseconds: now.milliseconds)
        else { return }
        var metadata: Logger.Metadata = [
            LogKeys.address: "\(peer.text)", LogKeys.setting: Self.settings(limit),
        ]
        if suppressed > 0 { metadata[LogKeys.suppressed] = "\(suppressed)" }
        logger.warning("New connection closed, its address has had its share", metadata: metadata)
    }

    /// Logs a delayed take-over between two peers with one client identifier.
    mutating func logTakeOverDelayed(
        _ report: TakeOverReport, peers: [String], now: MonotonicTime
    ) {
        var metadata: Logger.Metadata = [
            LogKeys.client: Self.text(report.clientIdentifier),
            LogKeys.peers: "\(peers.joined(separator: " "))",
            LogKeys.delay: "\(report.milliseconds)",
        ]
        if let userName = report.userName { metadata[LogKeys.user] = Self.text(userName) }
        admit(&closings["take-over", default: Self.limiter], now, metadata) { logger, metadata in
            logger.warning(
                "Two clients with one identifier throw each other out, the newcomer waits",
                metadata: metadata)
        }
    }

    /// Logs each change of memory shortage.
    func logMemory(_ pressure: MemoryPressure, used: Int, limit: Int) {
        let metadata: Logger.Metadata = [
            LogKeys.memoryUsed: "\(used)", LogKeys.memoryLimit: "\(limit)",
            LogKeys.setting: Self.settings(.memory),
        ]
        switch pressure {
        case .none: logger.notice("Memory is enough again", metadata: metadata)
        case .newcomers:
            logger.warning("Memory is short, new connections wait", metadata: metadata)
        case .publishers:
            logger.warning(
                "Memory is short, unfinished packets and large publishers are cut back",
                metadata: metadata)
        case .readers:
            logger.error("Memory is short, slow readers are closed", metadata: metadata)
        }
    }

    /// Logs that memory is short although no slow reader is left to close.
    mutating func logNothingToShed(used: Int, limit: Int, now: MonotonicTime) {
        admit(
            &closings["memory", default: LogLimiter(intervalMilliseconds: 10_000)], now,
            [
                LogKeys.memoryUsed: "\(used)", LogKeys.memoryLimit: "\(limit)",
                LogKeys.setting: Self.settings(.memory),
            ]
        ) { logger, metadata in
            logger.error(
                "Memory is short, and no slow reader holds it: sessions, queues or retained messages do",
                metadata: metadata)
        }
    }

    /// Logs that connections exceed their rate.
    mutating func logNewcomersWait(_ limit: Limit, now: MonotonicTime) {
        admit(
            &addresses[limit, default: Self.limiter], now,
            [LogKeys.setting: Self.settings(limit)]
        ) { logger, metadata in
            logger.warning("New connections come too fast, further ones wait", metadata: metadata)
        }
    }

    /// Logs that handshakes have reached their number.
    mutating func logHandshakesWait(now: MonotonicTime) {
        admit(
            &closings["handshakes", default: Self.limiter], now,
            [LogKeys.setting: Self.settings(.maxHandshakes)]
        ) { logger, metadata in
            logger.warning("TLS handshakes at their limit, new clients wait", metadata: metadata)
        }
    }

    /// Logs a failed TLS handshake. Each reason and each foreign protocol has its own rate limit,
    /// so that one kind does not hide another.
    mutating func logHandshakeFailed(
        _ failure: TLSFailure, _ handle: Handle, in reactor: borrowing Reactor,
        now: MonotonicTime
    ) {
        guard failure.reason != .closed else {
            // Port scanners and health checks only connect.
            guard wantsLifecycle else { return }
            let address = reactor.address(of: handle)
            logger.debug(
                "TLS handshake failed",
                metadata: [LogKeys.address: "\(address)", LogKeys.reason: "closed"])
            return
        }
        var metadata: Logger.Metadata = [
            LogKeys.connection: "\(handle.index)", LogKeys.reason: "\(failure.reason.name)",
            LogKeys.tlsFailure: "\(failure.explanation)",
        ]
        var kind = failure.reason.name
        if let opening = ForeignProtocol(opening: failure.opening) {
            metadata[LogKeys.hint] = "\(opening.hint)"
            kind += " \(opening)"
        }
        admit(&handshakes[kind, default: Self.limiter], now, metadata, handle, reactor) {
            logger, metadata in
            logger.notice("TLS handshake failed", metadata: metadata)
        }
    }

    private mutating func logClosed(
        _ handle: Handle, _ identifier: [UInt8]?, _ reason: CloseReason,
        _ opening: ForeignProtocol?, _ reactor: borrowing Reactor, _ now: MonotonicTime
    ) {
        var metadata: Logger.Metadata = [
            LogKeys.connection: "\(handle.index)", LogKeys.reason: "\(reason.name)",
        ]
        if let identifier { metadata[LogKeys.client] = Self.text(identifier) }
        if let setting = reason.setting { metadata[LogKeys.setting] = "\(setting)" }
        if case .networkError(let code) = reason { metadata[LogKeys.error] = "errno \(code)" }
        guard let announcement = reason.announcement else {
            guard wantsLifecycle else { return }
            metadata[LogKeys.address] = "\(reactor.address(of: handle))"
            logger.debug("Connection closed", metadata: metadata)
            return
        }
        // Each broken statement has its own rate limit.
        var kind = reason.name
        if case .protocolViolation(let violation) = reason {
            metadata[LogKeys.statement] = "\(violation.statement)"
            metadata[LogKeys.explanation] = "\(violation.explanation)"
            kind += " \(violation.statement)"
        }
        if let opening {
            metadata[LogKeys.hint] = "\(opening.hint)"
            kind += " \(opening)"
        }
        if case .tlsOnPlainListener = reason {
            metadata[LogKeys.tlsFailure] =
                "the listener serves plain TCP; point the client to one with tls, or let it do without"
        }
        if case .proxyHeader(let number) = reason, let flaw = MalformedProxyHeader(rawValue: number)
        {
            metadata[LogKeys.proxyFailure] = "\(flaw.explanation)"
            kind += " \(flaw)"
        }
        if case .tlsRecord(let number) = reason, let alert = SecureChannel.Alert(rawValue: number) {
            metadata[LogKeys.tlsFailure] = "\(Self.explanation(alert))"
        }
        admit(&closings[kind, default: Self.limiter], now, metadata, handle, reactor) {
            logger, metadata in
            let level: Logger.Level =
                switch announcement.severity {
                case .info: .info
                case .notice: .notice
                case .warning: .warning
                }
            logger.log(level: level, "\(announcement.message)", metadata: metadata)
        }
    }

    private static func explanation(_ alert: SecureChannel.Alert) -> String {
        switch alert {
        case .closeNotify: "the client sent an alert"
        case .unexpectedMessage: "a message that has no place there, or too many without data"
        case .badRecordMAC: "a record that was not sealed by the client, or not for this place"
        case .recordOverflow: "a record that is too long"
        case .decodeError: "an alert that is none"
        case .noRenegotiation: "the client began a handshake anew"
        }
    }

    /// Writes a line about a connection, with its address.
    private func admit(
        _ limiter: inout LogLimiter, _ now: MonotonicTime, _ metadata: Logger.Metadata,
        _ handle: Handle, _ reactor: borrowing Reactor,
        _ body: (Logger, Logger.Metadata) -> Void
    ) {
        guard case .log(let suppressed) = limiter.admit(atMilliseconds: now.milliseconds) else {
            return
        }
        var metadata = metadata
        metadata[LogKeys.address] = "\(reactor.address(of: handle))"
        if suppressed > 0 { metadata[LogKeys.suppressed] = "\(suppressed)" }
        body(logger, metadata)
    }

    private func admit(
        _ limiter: inout LogLimiter, _ now: MonotonicTime, _ metadata: Logger.Metadata,
        _ body: (Logger, Logger.Metadata) -> Void
    ) {
        switch limiter.admit(atMilliseconds: now.milliseconds) {
        case .suppress: return
        case .log(let suppressed):
            var metadata = metadata
            if suppressed > 0 { metadata[LogKeys.suppressed] = "\(suppressed)" }
            body(logger, metadata)
        }
    }

    private static func text(_ bytes: [UInt8]) -> Logger.MetadataValue {
        "\(String(decoding: bytes, as: UTF8.self))"
    }
}
