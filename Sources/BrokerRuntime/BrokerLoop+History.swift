import Addresses
import Authorization
import BrokerAPI
import BrokerCore
import BrokerFeatures
import PlainText
import Structures
import Transport

/// Histories of clients, from the shard's notices.
extension BrokerLoop {
    /// True when the shard tells of connections and their ends.
    var wantsLifecycle: Bool {
        notices.wantsLifecycle || settings.limits.historyBytes > 0 || tracer.isActive
    }

    /// Notes what a notice tells of a client.
    mutating func remember(_ notice: BrokerNotice) {
        switch notice {
        case .opened(let handle, let client, let userName, _, let sessionPresent):
            let keepsLittle = !histories.holds(client) && settings.limits.historyBytes > 0
            untold.set(
                keepsLittle
                    ? UntoldOpenings.Opening(
                        sinceMs: shard.wallClockMs, isResumed: sessionPresent) : nil,
                of: handle)
            let reason = Self.openingReason(isResumed: sessionPresent)
            if keepsLittle {
                trace(client, .connected, reason: reason, topic: nil, count: 1)
            } else {
                remember(client, .connected, reason: reason, of: handle, userName: userName)
            }
        case .closed(let handle, let client?, let userName, let reason, _):
            if let opening = untold[handle] {
                untold.set(nil, of: handle)
                note(happening(opening, of: handle, userName), to: client, atMs: opening.sinceMs)
            }
            remember(
                client, .disconnected, reason: reason.name, of: handle, userName: userName,
                detail: Self.detail(of: reason))
        case .refused(let handle, let client, let userName, let reason, let detail):
            remember(
                client, .refused, reason: reason.name, of: handle, userName: userName,
                detail: detail)
        case .dropping(let client, let reason, let message, let count):
            remember(
                client, .lostMessages, reason: reason.name, topic: message?.topic, count: count)
        case .willPublished(let client, let will):
            tracer.event(
                "its will is published on \(String(decoding: will.topic, as: UTF8.self))",
                client: client, atMs: shard.wallClockMs)
        case .subscriptionRefused(let client, let limit):
            remember(client, .filterRefused, reason: limit.name)
        case .access(let report):
            guard let refusal = report.event.refusal else { return }
            let isByLogin = report.line == AccessVerdict.loginLine
            remember(
                report.clientID, .denied, reason: refusal.name, topic: report.topic,
                detail: isByLogin ? "its login does not allow it" : nil)
        case .sessionEnded(let client, let end, let lost):
            if lost > 0 {
                remember(client, .lostMessages, reason: "session_ended", count: lost)
            }
            guard let end else { return }
            remember(client, end == .expired ? .expired : .sessionEnded, reason: end.name)
        case .deviceGone(let device, let reason):
            remember(
                device.clientID, .deviceGone, reason: reason, detail: Self.detail(of: device))
        case .deviceSetAside(let device, let reason):
            remember(
                device.clientID, .deviceSetAside, reason: reason, detail: Self.detail(of: device))
        default: break
        }
    }

    /// Clients in trouble, the newest trouble first.
    func troubles(_ kind: ClientEvent.Kind?, limit: Int) -> [ClientTrouble] {
        histories.troubles(kind, limit: limit) { Self.address($0).text }
    }

    private static func address(_ bytes: ArraySlice<UInt8>) -> IPAddress {
        bytes.withUnsafeBytes { $0.loadUnaligned(as: IPAddress.self) }
    }

    func history(of clientID: String) -> ClientHistory {
        var addresses: [IPAddress] = []
        var history = histories.history(of: clientID) { bytes in
            let address = Self.address(bytes)
            addresses.append(address)
            return address.text
        }
        if let (handle, userName) = shard.connection(ofClient: Array(clientID.utf8)),
            let opening = untold[handle]
        {
            let address = reactor.peerAddress(of: handle)
            if address != .unknown { addresses.append(address) }
            let event = ClientEvent(
                kind: .connected, firstMs: opening.sinceMs, lastMs: opening.sinceMs, count: 1,
                reason: Self.openingReason(isResumed: opening.isResumed),
                address: address == .unknown ? nil : address.text,
                userName: userName.map { String(decoding: $0, as: UTF8.self) })
            let later = history.events.prefix { $0.firstMs > opening.sinceMs }.count
            history.events.insert(event, at: later)
        }
        if let table = shard.banTable {
            history.bans = table.bans(
                ofClient: clientID, users: history.events.compactMap(\.userName),
                addresses: addresses, atMs: shard.wallClockMs
            ).map { BanModel($0, hits: table.hits[$0.id]) }
        }
        if !lockouts.isEmpty {
            let networks = Set(addresses.map(\.prefix.text))
            let users = Set(history.events.compactMap(\.userName).map { ForeignText($0) })
            history.lockouts = currentLockouts.filter { lockout in
                networks.contains(lockout.address)
                    && lockout.userName.map { users.contains(ForeignText($0)) } ?? true
            }
        }
        return history
    }

    /// What the client did that ended its connection, with the rule or the limit.
    private static func detail(of reason: CloseReason) -> String? {
        guard case .protocolViolation(let violation) = reason else { return nil }
        return "\(violation.explanation) (\(violation.statement))"
    }

    /// For ``history(of:)``; empty if it is not known.
    private func rawAddress(of handle: Handle) -> [UInt8] {
        let address = reactor.peerAddress(of: handle)
        return address == .unknown ? [] : withUnsafeBytes(of: address) { Array($0) }
    }

    private static func openingReason(isResumed: Bool) -> String {
        isResumed ? "resumed" : "new"
    }

    private func happening(
        _ opening: UntoldOpenings.Opening, of handle: Handle, _ userName: [UInt8]?
    ) -> ClientHistories.Happening {
        ClientHistories.Happening(
            .connected, reason: Self.openingReason(isResumed: opening.isResumed),
            address: rawAddress(of: handle), userName: userName)
    }

    private mutating func note(
        _ happening: ClientHistories.Happening, to client: [UInt8], atMs: Int64
    ) {
        // A refused CONNECT may name no client.
        guard settings.limits.historyBytes > 0, !client.isEmpty else { return }
        histories.note(happening, to: client, atMs: atMs, limit: settings.limits.historyBytes)
    }

    private mutating func remember(
        _ client: [UInt8], _ kind: ClientEvent.Kind, reason: String, of handle: Handle? = nil,
        userName: [UInt8]? = nil, topic: [UInt8]? = nil, count: UInt64 = 1,
        detail: String? = nil
    ) {
        trace(client, kind, reason: reason, topic: topic, count: count)
        note(
            ClientHistories.Happening(
                kind, reason: reason,
                address: handle.map { rawAddress(of: $0) } ?? [],
                userName: userName, topic: topic, count: count, detail: detail),
            to: client, atMs: shard.wallClockMs)
    }

    /// The name of a device; `nil` for one without.
    private static func detail(of device: ReportedDevice) -> String? {
        device.name.isEmpty ? nil : String(decoding: device.name, as: UTF8.self)
    }

    private mutating func trace(
        _ client: [UInt8], _ kind: ClientEvent.Kind, reason: String, topic: [UInt8]?, count: UInt64
    ) {
        guard tracer.isActive else { return }
        let place = topic.map { ", \(String(decoding: $0, as: UTF8.self))" } ?? ""
        tracer.event(
            Self.words(kind, reason: reason, count: count) + place, client: client,
            atMs: shard.wallClockMs)
    }

    private static func words(_ kind: ClientEvent.Kind, reason: String, count: UInt64) -> String {
        switch kind {
        case .connected: "is admitted, its session is \(reason)"
        case .disconnected: "connection ended: \(reason)"
        case .refused: "CONNECT refused: \(reason)"
        case .lostMessages: "lost \(count) messages: \(reason)"
        case .filterRefused: "filter refused at a limit: \(reason)"
        case .denied: "denied by the access rules: \(reason)"
        case .expired: "session expired"
        case .sessionEnded: "session ended: \(reason)"
        case .deviceGone: "device gone, says its push service: \(reason)"
        case .deviceSetAside: "device set aside, since its push service refuses it: \(reason)"
        case .flapping: "comes and goes: \(reason)"
        }
    }
}
