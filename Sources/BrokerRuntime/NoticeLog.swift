import BrokerAPI
import BrokerCore
import BrokerFeatures
import Logging
import MQTTCore
import OperatorLog
import Structures
import TLS
import Transport

/// Turns notices of the shard into log lines, each event once, rate-limited.
struct NoticeLog {
    let logger: Logger
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
            case .offline, .expired, .reservedTopic, .byOperator, .notAllowed, .replaced, .tooLarge,
                .refused:
                break
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
        case .deviceGone(let device, let reason):
            write(
                .notice, "Device is gone, says its push service, and is forgotten", now,
                Self.metadata(device, reason))
        case .deviceSetAside(let device, let reason):
            write(
                .warning,
                "Push service does not know the device, which is not woken until it registers again",
                now, Self.metadata(device, reason))
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
        case .unknownZone(let name):
            metadata[LogKeys.zone] = Self.text(name)
            metadata[LogKeys.hint] =
                "it must be a name of this machine's zone data (tzdata), such as Europe/Berlin"
            write(
                .notice, "Device registered without its time zone, which is not known", now,
                metadata)
        }
    }

    private static func metadata(_ device: ReportedDevice, _ reason: String) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            LogKeys.client: text(device.clientID), LogKeys.reason: text(Array(reason.utf8)),
        ]
        if !device.name.isEmpty { metadata[LogKeys.device] = text(device.name) }
        if !device.bundle.isEmpty { metadata[LogKeys.app] = text(device.bundle) }
        return metadata
    }

    /// Forgets known denials, because the access rules have changed.
    mutating func forgetAccess() { access = AccessLog() }

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
    mutating func write(
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
    mutating func write(
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

    static func text(_ bytes: [UInt8]) -> Logger.MetadataValue {
        "\(String(decoding: bytes, as: UTF8.self))"
    }

    /// The name of a connection: a later one at the same place has another.
    static func name(of handle: Handle) -> Logger.MetadataValue {
        "\(handle.index).\(handle.generation)"
    }
}
