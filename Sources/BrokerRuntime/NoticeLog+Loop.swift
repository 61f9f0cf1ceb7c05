import Addresses
import BrokerAPI
import BrokerCore
import Logging
import OperatorLog
import Structures
import SystemFiles
import TLS
import Transport

/// Lines about what the loop decides by itself: drains, new connections, handshakes, memory.
extension NoticeLog {
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

    // MARK: New connections

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

    // MARK: Memory

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
}
