import BrokerCore
import Logging
import OperatorLog
import Structures

/// Logs denials by the access rules: each kind of denial of a client once, rate-limited.
struct AccessLog {
    /// One kind of denial; topics with the same first level count as one.
    private struct Kind: Hashable {
        var event: AccessReport.Event
        var clientIdentifier: [UInt8]
        var userName: [UInt8]?
        var firstLevel: [UInt8]
    }

    /// Known kinds; beyond it the table is cleared, and only the rate limit remains.
    private static let capacity = 1_024
    /// Bytes kept of each name, which may be 64 KiB long; a log line shows fewer.
    private static let bytesKept = 256
    /// A denial that continues is logged again after this time.
    private static let memoryMilliseconds: UInt64 = 10 * 60 * 1_000

    private var known: Set<Kind> = []
    private var forgetAt: MonotonicTime?
    private var limiters: [AccessReport.Event: LogLimiter] = [:]

    mutating func log(_ report: AccessReport, _ logger: Logger, now: MonotonicTime) {
        let kind = Self.kind(of: report)
        guard isNew(kind, now) else { return }
        let limiter = LogLimiter(intervalMilliseconds: 1_000)
        guard
            case .log(let suppressed) = limiters[report.event, default: limiter]
                .admit(atMilliseconds: now.milliseconds)
        else { return }
        // A suppressed denial must not count as known, so that it is logged later.
        known.insert(kind)
        var metadata: Logger.Metadata = [
            LogKeys.client: Self.text(report.clientIdentifier),
            LogKeys.topic: Self.text(report.topic),
            LogKeys.rule: report.line == 0 ? "none" : "\(report.line)",
        ]
        if let userName = report.userName { metadata[LogKeys.user] = Self.text(userName) }
        if suppressed > 0 { metadata[LogKeys.suppressed] = "\(suppressed)" }
        switch report.event {
        case .publish:
            logger.notice(
                "Connection closed, its client may not publish to this topic", metadata: metadata)
        case .subscribe:
            logger.notice("Subscription refused by the access rules", metadata: metadata)
        case .narrowed:
            logger.info(
                "Subscription reaches further than the rights, only allowed topics are delivered",
                metadata: metadata)
        case .withheld:
            logger.info(
                "Message not delivered, its receiver may not read this topic", metadata: metadata)
        case .deliver:
            logger.notice(
                "Queued messages dropped, their receiver may not read them any more",
                metadata: metadata)
        case .will:
            logger.notice(
                "Will not published, its client may not publish to this topic", metadata: metadata)
        }
    }

    private mutating func isNew(_ kind: Kind, _ now: MonotonicTime) -> Bool {
        if known.count >= Self.capacity || forgetAt.map({ $0 <= now }) ?? true {
            known.removeAll(keepingCapacity: true)
            forgetAt = now.advanced(byMilliseconds: Self.memoryMilliseconds)
        }
        return !known.contains(kind)
    }

    private static func kind(of report: AccessReport) -> Kind {
        Kind(
            event: report.event,
            clientIdentifier: Array(report.clientIdentifier.prefix(bytesKept)),
            userName: report.userName.map { Array($0.prefix(bytesKept)) },
            firstLevel: Array(report.topic.prefix(bytesKept).prefix { $0 != UInt8(ascii: "/") }))
    }

    private static func text(_ bytes: [UInt8]) -> Logger.MetadataValue {
        "\(String(decoding: bytes, as: UTF8.self))"
    }
}
