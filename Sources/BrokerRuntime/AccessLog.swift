import Authorization
import BrokerCore
import BrokerFeatures
import Logging
import OperatorLog
import Structures

/// Logs denials by the access rules: each kind of denial of a client once in ten minutes, and one line
/// a second for each event.
struct AccessLog {
    /// One kind of denial; topics with the same first level count as one.
    private struct Kind: Hashable {
        var event: AccessReport.Event
        var clientID: ArraySlice<UInt8>
        var userName: ArraySlice<UInt8>?
        var firstLevel: ArraySlice<UInt8>
    }

    /// Bytes compared of each name, which may be 64 KiB long; a log line shows fewer.
    private static let bytesCompared = 256

    private var limiter = LogLimiter(maximumKeys: 1_024)

    /// A denial that continues is logged again after ten minutes.
    mutating func log(_ report: AccessReport, _ logger: Logger, now: MonotonicTime) {
        let heldBack = limiter.admit(
            Self.kind(of: report), every: .seconds(600), in: report.event,
            atMilliseconds: now.milliseconds)
        guard let heldBack else { return }
        var metadata: Logger.Metadata = [
            LogKeys.client: Self.text(report.clientID),
            LogKeys.topic: Self.text(report.topic),
            LogKeys.rule: Self.rule(report.line),
        ]
        if let userName = report.userName { metadata[LogKeys.user] = Self.text(userName) }
        metadata = metadata.suppressing(heldBack.ofGroup)
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

    private static func rule(_ line: UInt32) -> Logger.MetadataValue {
        switch line {
        case 0: "none"
        case AccessVerdict.loginLine: "token"
        default: "\(line)"
        }
    }

    private static func kind(of report: AccessReport) -> Kind {
        Kind(
            event: report.event, clientID: report.clientID.prefix(bytesCompared),
            userName: report.userName?.prefix(bytesCompared),
            firstLevel: report.topic.prefix(bytesCompared).prefix { $0 != UInt8(ascii: "/") })
    }

    private static func text(_ bytes: [UInt8]) -> Logger.MetadataValue {
        "\(String(decoding: bytes, as: UTF8.self))"
    }
}
