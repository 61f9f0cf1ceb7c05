import Addresses
import BrokerAPI
import BrokerCore
import BrokerFeatures
import Logging
import MQTTCore
import OperatorLog
import Structures
import SystemFiles
import TLS
import Transport

/// Turns notices of the shard into log lines, each event once, rate-limited.
struct NoticeLog {
    private let logger: Logger
    /// The level of lines about each connection and each end of one.
    private let connections: Logger.Level
    /// Clients that come and go by the thousand, or under long names, must not fill the disk.
    private var lifecycleLines = LineBudget(perSecond: 1_000, bytesPerSecond: 256 << 10)
    private var limiter = LogLimiter()
    private var access = AccessLog()

    init(logger: Logger, connections: Logger.Level) {
        self.logger = logger
        self.connections = connections
    }

    // MARK: Drains

    func logDrainStarted(perSecond: Int, connections: Int) {
        logger.notice(
            "Draining, connections are closed at a rate and new ones are refused",
            metadata: [
                LogKeys.connections: "\(connections)", LogKeys.perSecond: "\(perSecond)",
                LogKeys.hint: "hermesctl drain stop lets clients connect again",
            ])
    }

    func logDrained(closed: Int) {
        logger.notice(
            "Drained, no connection is left and new ones are refused",
            metadata: [LogKeys.connectionsClosed: "\(closed)"])
    }

    func logDrainEnded(closed: Int) {
        logger.notice(
            "Drain ended, clients can connect again",
            metadata: [LogKeys.connectionsClosed: "\(closed)"])
    }

    func logDrainGoesOn(_ error: SystemError) {
        logger.error(
            "Drain goes on, a listener cannot listen again",
            metadata: [LogKeys.error: "\(error)"])
    }

    var wantsLifecycle: Bool { logger.logLevel <= connections }
    var wantsDetails: Bool { logger.logLevel <= .debug }

    /// Asks the reactor for an address, a system call, only for lines that are written.
    mutating func log(_ notice: BrokerNotice, in reactor: borrowing Reactor, now: MonotonicTime) {
        switch notice {
        case .opened(
            let handle, let identifier, let userName, let cleanSession, let sessionPresent):
            guard wantsLifecycle,
                let heldBack = takeLifecycleLine(identifier, userName, now)
            else { return }
            var metadata: Logger.Metadata = [
                LogKeys.connection: Self.name(of: handle),
                LogKeys.address: "\(reactor.address(of: handle))",
                LogKeys.client: Self.text(identifier),
                LogKeys.cleanSession: "\(cleanSession)",
                LogKeys.sessionPresent: "\(sessionPresent)",
            ]
            if let userName { metadata[LogKeys.user] = Self.text(userName) }
            logger.log(
                level: connections, "Client connected", metadata: metadata.suppressing(heldBack))
        case .closed(let handle, let identifier, let userName, let reason, let opening):
            logClosed(handle, identifier, userName, reason, opening, reactor, now)
        case .refused(let handle, let identifier, let userName, let reason, let detail):
            var metadata: Logger.Metadata = [
                LogKeys.connection: Self.name(of: handle), LogKeys.client: Self.text(identifier),
                LogKeys.reason: "\(reason.name)",
            ]
            if let userName { metadata[LogKeys.user] = Self.text(userName) }
            if let detail { metadata[LogKeys.login] = "\(detail)" }
            if let setting = Self.setting(reason) { metadata[LogKeys.setting] = "\(setting)" }
            if let ban = reason.ban { metadata[LogKeys.ban] = "\(ban.text)" }
            write(
                .notice, "Connection refused", of: reason.name, now, metadata, handle, reactor)
        case .dropping(let identifier, .reservedTopic, _, let count):
            logger.notice(
                "Messages below $SYS/, $CONTROL/ or $hermes/ dropped, no client publishes there",
                metadata: [LogKeys.client: Self.text(identifier), LogKeys.count: "\(count)"])
        case .dropping(let identifier, let reason, let message, let count):
            var metadata = message.map { Self.metadata($0) } ?? [:]
            metadata[LogKeys.client] = Self.text(identifier)
            metadata[LogKeys.reason] = "\(reason.name)"
            metadata[LogKeys.count] = "\(count)"
            switch reason {
            case .queueFull:
                metadata[LogKeys.setting] = Self.settings(.queueMessages, .queueBytes)
            case .slowReader: metadata[LogKeys.setting] = Self.settings(.outputBytes)
            case .offline, .expired, .reservedTopic, .byOperator, .notAllowed, .replaced: break
            }
            logger.warning("Messages dropped", metadata: metadata)
        case .droppingOfOthers(let count):
            logger.warning(
                "Messages of further clients dropped", metadata: [LogKeys.count: "\(count)"])
        case .willPublished(let identifier, let will):
            logger.debug(
                "Will published",
                metadata: [
                    LogKeys.client: Self.text(identifier), LogKeys.topic: Self.text(will.topic),
                ])
        case .sessionEnded(let identifier, let end, let lost): log(end, of: identifier, lost, now)
        case .subscriptionRefused(let identifier, let limit):
            write(
                .notice, "Subscription refused at a limit", now,
                [LogKeys.client: Self.text(identifier), LogKeys.setting: Self.settings(limit)])
        case .notRetained(let message, let limit):
            var metadata = Self.metadata(message)
            metadata[LogKeys.setting] = Self.settings(limit)
            write(.warning, "Message not retained, a limit is reached", now, metadata)
        case .scheduledExpired(let messageID, let message):
            var metadata = Self.metadata(message)
            metadata[LogKeys.messageID] = Self.text(messageID)
            write(.warning, "Scheduled message expired before it was published", now, metadata)
        case .takeOverDelayed(let report): logTakeOverDelayed(report, peers: [], now: now)
        case .access(let report): access.log(report, logger, now: now)
        case .unreadable(let identifier, let failure):
            logger.error(
                "Queue could not be read, connection closed",
                metadata: [LogKeys.client: Self.text(identifier), LogKeys.error: "\(failure)"])
        case .damagedMessage(let identifier, let position):
            logger.error(
                "Stored message has no topic, left out",
                metadata: [
                    LogKeys.client: Self.text(identifier), LogKeys.error: "position \(position)",
                ])
        case .unreadableEnded(let identifier, let failure):
            logger.error(
                "Queue of an ended session could not be read, its shared messages wait for a restart",
                metadata: [LogKeys.client: Self.text(identifier), LogKeys.error: "\(failure)"])
        case .awaitsStore(let handle, let identifier):
            var metadata: Logger.Metadata = [LogKeys.connection: Self.name(of: handle)]
            if let identifier { metadata[LogKeys.client] = Self.text(identifier) }
            logger.debug("Client waits until the store takes more", metadata: metadata)
        case .deviceRefused(let identifier, let refusal):
            logDeviceRefused(identifier, refusal, now)
        case .deviceGone(let identifier, let reason):
            write(
                .notice, "Device is gone, says its push service, and is forgotten", now,
                [
                    LogKeys.client: Self.text(identifier),
                    LogKeys.reason: Self.text(Array(reason.utf8)),
                ])
        case .deviceSetAside(let identifier, let reason):
            write(
                .warning,
                "Push service does not know the device, which is not woken until it registers again",
                now,
                [
                    LogKeys.client: Self.text(identifier),
                    LogKeys.reason: Self.text(Array(reason.utf8)),
                ])
        case .storeBehind(let bytes):
            write(
                .warning, "The disk is too slow, clients that want more stored wait",
                every: .seconds(10), now, [LogKeys.bytesWaiting: "\(bytes)"])
        case .paused(let handle, let identifier, let isPaused):
            logger.debug(
                isPaused ? "Publisher paused" : "Publisher resumed",
                metadata: [
                    LogKeys.connection: Self.name(of: handle),
                    LogKeys.client: Self.text(identifier),
                    LogKeys.setting:
                        Self.settings(.maxUnacknowledgedPublishes, .maxUnacknowledgedBytes),
                ])
        }
    }

    /// A persistent session ended, with so many messages that nobody gets.
    private mutating func log(
        _ end: SessionEnd?, of client: [UInt8], _ lost: UInt64, _ now: MonotonicTime
    ) {
        var metadata: Logger.Metadata = [LogKeys.client: Self.text(client)]
        if let end { metadata[LogKeys.reason] = "\(end.name)" }
        guard lost > 0 else {
            logger.debug("Session ended", metadata: metadata)
            return
        }
        metadata[LogKeys.count] = "\(lost)"
        if end == .expired { metadata[LogKeys.setting] = Self.settings(.sessionExpiry) }
        write(
            .warning, "Session ended with messages that nobody got", of: end?.name ?? "", now,
            metadata)
    }

    private mutating func logDeviceRefused(
        _ identifier: [UInt8], _ refusal: DeviceRefusal, _ now: MonotonicTime
    ) {
        var metadata: Logger.Metadata = [LogKeys.client: Self.text(identifier)]
        switch refusal {
        case .malformed(let bytes):
            metadata[LogKeys.payloadBytes] = "\(bytes)"
            metadata[LogKeys.hint] =
                "its PUBLISH to $hermes/device must hold a hermes.v1.DeviceRegistration"
            write(.notice, "Device not registered, its registration cannot be read", now, metadata)
        case .noRoom:
            metadata[LogKeys.setting] = "limits.device_bytes"
            write(.warning, "Device not registered, there is no room for it", now, metadata)
        case .ofAnotherUser:
            metadata[LogKeys.hint] = "hermesctl devices forget CLIENT makes room for the new user's"
            write(
                .notice, "Device of a client not changed, it is another user's", now, metadata)
        }
    }

    /// The keys of limits, or why there are none.
    private static func settings(_ limits: Limit...) -> Logger.MetadataValue {
        "\(limits.map { setting($0) }.joined(separator: ", "))"
    }

    /// The key that raises the limit which ended a connection, or that would have let it begin.
    private static func setting(_ reason: CloseReason) -> String? {
        if case .proxyHeader = reason { return "listeners[].proxy_from" }
        if case .webSocket(let flaw) = reason { return setting(WebSocketFlaw(rawValue: flaw)) }
        return reason.limit.map { setting($0) }
    }

    /// The key that decides about a request for WebSocket or a frame; `nil` for other flaws.
    private static func setting(_ flaw: WebSocketFlaw?) -> String? {
        switch flaw {
        case .path: "listeners[].websocket.path"
        case .origin: "listeners[].websocket.origins"
        case .token, .severalTokens: "listeners[].websocket.token"
        case .frameTooLong: "limits.max_packet"
        default: nil
        }
    }

    private static func setting(_ limit: Limit) -> String {
        switch limit {
        case .unsubscribeFilters: "none: an UNSUBSCRIBE has \(Shard.maxUnsubscribeFilters) filters"
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
        write(
            .warning, "New connections refused, none is left", every: .seconds(10), now,
            [LogKeys.setting: "\(setting)"])
    }

    /// Logs that calls on sockets failed for lack of kernel memory, and will be made again.
    mutating func logKernelShortage(now: MonotonicTime) {
        write(
            .warning, "The kernel lacks memory for connections, what fails is tried again",
            every: .seconds(10), now, [:])
    }

    /// Logs a new connection closed because its address has reached a limit.
    mutating func logAddressTurnedAway(_ limit: Limit, _ peer: IPAddress, now: MonotonicTime) {
        write(
            .warning, "New connection closed, its address has had its share", of: limit.name, now,
            [LogKeys.address: "\(peer.text)", LogKeys.setting: Self.settings(limit)])
    }

    /// Logs a lock after wrong passwords, once for each.
    mutating func logLockout(
        _ beginning: Lockouts.Beginning, _ peer: IPAddress, for time: Duration, now: MonotonicTime
    ) {
        var metadata: Logger.Metadata = [
            LogKeys.address: "\(peer.text)", LogKeys.setting: Self.settings(beginning.limit),
            LogKeys.wrongPasswords: "\(beginning.wrong)",
            LogKeys.lockSeconds: "\(time.wholeMilliseconds / 1_000)",
        ]
        if let userName = beginning.userName { metadata[LogKeys.user] = Self.text(userName) }
        write(
            .warning, "Too many wrong passwords, locked out", of: beginning.limit.name, now,
            metadata)
    }

    /// Logs a new connection closed because its address is banned.
    mutating func logBannedAddress(_ ban: Ban, _ peer: IPAddress, now: MonotonicTime) {
        write(
            .notice, "New connection closed, its address is banned", now,
            [LogKeys.address: "\(peer.text)", LogKeys.ban: "\(ban.id.text)"])
    }

    /// Logs a delayed take-over between two peers with one client identifier.
    mutating func logTakeOverDelayed(
        _ report: TakeOverReport, peers: [String], now: MonotonicTime
    ) {
        var metadata: Logger.Metadata = [
            LogKeys.client: Self.text(report.clientID),
            LogKeys.peers: "\(peers.joined(separator: " "))",
            LogKeys.delay: "\(report.milliseconds)",
        ]
        if let userName = report.userName { metadata[LogKeys.user] = Self.text(userName) }
        write(
            .warning, "Two clients with one identifier throw each other out, the newcomer waits",
            now, metadata)
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

    /// Logs that only state takes the memory, beside which newcomers are admitted.
    func logSettledState(used: Int, limit: Int) {
        logger.error(
            "Memory is short, and nothing is left to be freed: new connections are admitted, nothing new is kept",
            metadata: [
                LogKeys.memoryUsed: "\(used)", LogKeys.memoryLimit: "\(limit)",
                LogKeys.setting: Self.settings(.memory, .sessionBytes, .retainedBytes),
            ])
    }

    /// Logs that memory is short although no slow reader is left to close.
    mutating func logNothingToShed(used: Int, limit: Int, now: MonotonicTime) {
        write(
            .error,
            "Memory is short, and no slow reader holds it: sessions, queues or retained messages do",
            every: .seconds(10), now,
            [
                LogKeys.memoryUsed: "\(used)", LogKeys.memoryLimit: "\(limit)",
                LogKeys.setting: Self.settings(.memory),
            ])
    }

    /// Logs that connections exceed their rate.
    mutating func logNewcomersWait(_ limit: Limit, now: MonotonicTime) {
        write(
            .warning, "New connections come too fast, further ones wait", of: limit.name, now,
            [LogKeys.setting: Self.settings(limit)])
    }

    /// Logs that handshakes have reached their number.
    mutating func logHandshakesWait(now: MonotonicTime) {
        write(
            .warning, "TLS handshakes at their limit, new clients wait", now,
            [LogKeys.setting: Self.settings(.maxHandshakes)])
    }

    /// Logs a failed TLS handshake. Each reason and each foreign protocol has its own rate limit,
    /// so that one kind does not hide another.
    mutating func logHandshakeFailed(
        _ failure: TLSFailure, _ handle: Handle, in reactor: borrowing Reactor,
        now: MonotonicTime
    ) {
        guard failure.reason != .closed else {
            // Port scanners and health checks only connect.
            guard wantsDetails else { return }
            let address = reactor.address(of: handle)
            logger.debug(
                "TLS handshake failed",
                metadata: [LogKeys.address: "\(address)", LogKeys.reason: "closed"])
            return
        }
        var metadata: Logger.Metadata = [
            LogKeys.connection: Self.name(of: handle), LogKeys.reason: "\(failure.reason.name)",
            LogKeys.tlsFailure: "\(failure.explanation)",
        ]
        var kind = failure.reason.name
        if let opening = ForeignProtocol(opening: failure.opening) {
            metadata[LogKeys.hint] = "\(opening.hint)"
            kind += " \(opening)"
        }
        write(.notice, "TLS handshake failed", of: kind, now, metadata, handle, reactor)
    }

    private mutating func logClosed(
        _ handle: Handle, _ identifier: [UInt8]?, _ userName: [UInt8]?, _ reason: CloseReason,
        _ opening: ForeignProtocol?, _ reactor: borrowing Reactor, _ now: MonotonicTime
    ) {
        // Port scanners and health checks only connect.
        let usualLevel = identifier == nil ? .debug : connections
        guard reason.announcement != nil || logger.logLevel <= usualLevel else { return }
        var metadata: Logger.Metadata = [
            LogKeys.connection: Self.name(of: handle), LogKeys.reason: "\(reason.name)",
        ]
        if let identifier { metadata[LogKeys.client] = Self.text(identifier) }
        if let userName { metadata[LogKeys.user] = Self.text(userName) }
        if let setting = Self.setting(reason) { metadata[LogKeys.setting] = "\(setting)" }
        if let ban = reason.ban { metadata[LogKeys.ban] = "\(ban.text)" }
        if case .networkError(let code) = reason { metadata[LogKeys.error] = "errno \(code)" }
        guard let announcement = reason.announcement else {
            guard let heldBack = takeLifecycleLine(identifier, userName, now) else { return }
            metadata[LogKeys.address] = "\(reactor.address(of: handle))"
            logger.log(
                level: usualLevel, "Connection closed", metadata: metadata.suppressing(heldBack))
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
        if case .webSocket(let number) = reason, let flaw = WebSocketFlaw(rawValue: number) {
            metadata[LogKeys.webSocketFailure] = "\(flaw.explanation)"
            kind += " \(flaw)"
        }
        if case .tlsRecord(let number) = reason, let alert = SecureChannel.Alert(rawValue: number) {
            metadata[LogKeys.tlsFailure] = "\(Self.explanation(alert))"
        }
        let level: Logger.Level =
            switch announcement.severity {
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            }
        write(level, "\(announcement.message)", of: kind, now, metadata, handle, reactor)
    }

    /// Asks for a line about a client that has come or gone; see ``LineBudget``.
    private mutating func takeLifecycleLine(
        _ identifier: [UInt8]?, _ userName: [UInt8]?, _ now: MonotonicTime
    ) -> Int? {
        let names = [identifier, userName].reduce(0) { $0 + min($1?.count ?? 0, 1_024) }
        return lifecycleLines.take(bytes: 128 + names, atMilliseconds: now.milliseconds)
    }

    private static func explanation(_ alert: SecureChannel.Alert) -> String {
        switch alert {
        case .closeNotify: "the client sent an alert"
        case .unexpectedMessage: "a message that has no place there, or too many without data"
        case .badRecordMAC: "a record that was not sealed by the client, or not for this place"
        case .recordOverflow: "a record that is too long"
        case .illegalParameter: "a message with a value that is not allowed"
        case .decodeError: "an alert or a message of a wrong length"
        case .noRenegotiation: "the client began a handshake anew"
        }
    }

    /// Writes a line about a connection, with its address.
    private mutating func write(
        _ level: Logger.Level, _ message: Logger.Message, of kind: String, _ now: MonotonicTime,
        _ metadata: Logger.Metadata, _ handle: Handle, _ reactor: borrowing Reactor
    ) {
        let heldBack = limiter.admit(["\(message)", kind], atMilliseconds: now.milliseconds)
        guard let heldBack else { return }
        var metadata = metadata.suppressing(heldBack)
        metadata[LogKeys.address] = "\(reactor.address(of: handle))"
        logger.log(level: level, message, metadata: metadata)
    }

    /// Writes a line, unless one with the same message and kind was written within the interval.
    private mutating func write(
        _ level: Logger.Level, _ message: Logger.Message, of kind: String = "",
        every interval: Duration = .seconds(1), _ now: MonotonicTime, _ metadata: Logger.Metadata
    ) {
        let heldBack = limiter.admit(
            ["\(message)", kind], every: interval, atMilliseconds: now.milliseconds)
        guard let heldBack else { return }
        logger.log(level: level, message, metadata: metadata.suppressing(heldBack))
    }

    /// The topic of a message, and its identifier if it has one.
    private static func metadata(_ message: ReportedMessage) -> Logger.Metadata {
        var metadata: Logger.Metadata = [LogKeys.topic: text(message.topic)]
        if !message.messageID.isEmpty { metadata[LogKeys.messageID] = text(message.messageID) }
        return metadata
    }

    private static func text(_ bytes: [UInt8]) -> Logger.MetadataValue {
        "\(String(decoding: bytes, as: UTF8.self))"
    }

    /// The name of a connection: a later one at the same place has another.
    private static func name(of handle: Handle) -> Logger.MetadataValue {
        "\(handle.index).\(handle.generation)"
    }
}
