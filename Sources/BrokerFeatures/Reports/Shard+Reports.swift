import BrokerAPI
import BrokerCore
import Structures

/// Reports of clients about what reached them, which they publish to `hermes/reports/<client
/// identifier>`. The broker reads them on their way to subscribers.
extension Shard {
    /// Places that a page looks at.
    private static var placesPerPage: UInt32 { 16_384 }

    /// Reads an accepted PUBLISH if it is a report.
    @inline(never)
    mutating func takeReport(
        _ topic: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, from session: UInt32
    ) {
        let prefix = UnsafeRawBufferPointer(
            start: ReportReader.topicPrefix.utf8Start,
            count: ReportReader.topicPrefix.utf8CodeUnitCount)
        guard context.limits.reportBytes > 0, topic.count > prefix.count, topic.starts(with: prefix)
        else { return }
        let named = UnsafeRawBufferPointer(rebasing: topic[prefix.count...])
        guard sessions[session].clientID.equals(named) else {
            features.reports.count(.foreign)
            return
        }
        context.budget.spend(WorkBudget.report(bytes: min(payload.count, ReportReader.mostBytes)))
        features.reports.take(
            payload, of: named, limit: context.limits.reportBytes, startedAtMs: system.startedAtMs,
            nowMs: context.wallClockMs, pool: pool)
    }

    /// Keeps no more reports than the limits of now allow.
    public mutating func trimReports() {
        features.reports.trim(to: context.limits.reportBytes, pool)
    }

    /// A client's newest report; `nil` without one.
    public func report(of clientID: String) -> ClientReport? {
        Array(clientID.utf8).withUnsafeBytes { features.reports.report(of: $0) }
    }

    /// The sums over all reports, with one client's report if there is one.
    public func arrivals(of clientID: String) -> ArrivalPage {
        ArrivalPage(total: features.reports.total, clients: report(of: clientID).map { [$0] } ?? [])
    }

    /// The sums over all reports, with a page of them. It looks at a bounded number of places, so it
    /// may be short.
    public func arrivals(from first: UInt32, limit: Int, withLosses: Bool) -> ArrivalPage {
        features.reports.reports(
            from: first, most: limit, places: Self.placesPerPage, withLosses: withLosses)
    }

    /// Counts a connection that ended without its client's DISCONNECT.
    mutating func countLoss(of connection: Connection, _ reason: CloseReason) {
        guard connection.machine.isOpen, let cause = reason.lossCause else { return }
        let silence = context.now.milliseconds(since: connection.keepAlive.lastPacket)
        sessions[connection.session].clientID.withBytes {
            features.reports.connectionLost(cause, of: $0, silentMilliseconds: silence)
        }
    }
}

extension CloseReason {
    /// `nil` for an end that the broker or its client wanted.
    fileprivate var lossCause: LossCause? {
        switch self {
        case .keepAlive: .keepAlive
        case .networkError: .networkError
        case .peerClosed: .peerClosed
        case .takenOver: .takenOver
        default: nil
        }
    }
}

extension ShowArrivals: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<ArrivalPage>) {
        reply(.success(shard.arrivals(of: clientID)))
    }
}

extension ListArrivals: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<ArrivalPage>) {
        reply(.success(shard.arrivals(from: from, limit: limit, withLosses: withLosses)))
    }
}
