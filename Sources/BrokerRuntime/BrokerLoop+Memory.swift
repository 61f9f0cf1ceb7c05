import BrokerAPI
import BrokerCore
import BrokerFeatures
import CLinux
import Structures
import Transport

/// The loop's measurements of memory.
struct MemoryWatch {
    var pressure = MemoryPressure.none
    /// Private memory of the process at the last measurement.
    var usedBytes = 0
    /// The first turn from this time on measures again.
    var nextLook = MonotonicTime(milliseconds: 0)
    /// Beside settled state, freed heap memory is given back to the system from this time on.
    var nextTrim = MonotonicTime(milliseconds: 0)
    /// Bytes received until the last measurement.
    var receivedBytes: UInt64 = 0
    /// Until this time, closing connections with incomplete packets is not tried again.
    var nextShedding = MonotonicTime(milliseconds: 0)
    /// The time until which newcomers wait for memory; `nil` while there is enough.
    var patience: MonotonicTime?
    var settledState = SettledState()
}

/// Reactions to a shortage of memory, in this order: new connections wait, incomplete packets and
/// large publishers are limited, slow readers are closed. Clients that read and finish their
/// packets are not affected.
///
/// New connections wait for `limits.connect_timeout` at most. What cannot be freed until then is
/// state, such as sessions: newcomers are admitted beside it, and none is added (``SettledState``).
extension BrokerLoop {
    private static var lookMilliseconds: UInt64 { 250 }
    /// A measurement takes about 10 us; this much input makes another one worthwhile.
    private static var lookBytes: UInt64 { 16 * 1_024 * 1_024 }
    /// Incomplete packets that may come beyond their bound before connections close.
    private static var mostExcess: Int { 4 * 1_024 * 1_024 }
    /// Giving heap memory back walks the heap, which settled state makes large for long.
    private static var trimMilliseconds: UInt64 { 5_000 }

    /// Measures if it is time, and closes connections if memory is short.
    mutating func watchMemory() {
        lookAtMemory()
        let isShort = memory.pressure >= .publishers
        let bound = settings.limits.unfinishedBytes / (isShort ? 8 : 1)
        shedUnfinished(to: bound)
        reactor.heldBackBound = bound
    }

    private mutating func lookAtMemory() {
        guard let configured = settings.limits.memoryBytes else {
            memory.settledState = SettledState()
            setPressure(.none, limit: 0)
            return
        }
        let isTime = shard.now >= memory.nextLook
        guard isTime || reactor.bytesReceived &- memory.receivedBytes >= Self.lookBytes
        else { return }
        memory.nextLook = shard.now.advanced(byMilliseconds: Self.lookMilliseconds)
        memory.receivedBytes = reactor.bytesReceived
        measure(isTime: isTime, limit: configured)
        if memory.settledState.ends(used: memory.usedBytes, limit: configured) {
            notices.logMemory(.none, used: memory.usedBytes, limit: configured)
            passLimits()
        }
        let limit = memory.settledState.limit(configured)
        setPressure(memory.pressure.next(used: memory.usedBytes, limit: limit), limit: configured)
        guard memory.pressure != .none, isTime else { return }
        shard.shedNewcomers()
        shedReaders(limit: limit, configured: configured)
    }

    private mutating func measure(isTime: Bool, limit: Int) {
        memory.usedBytes = ProcessFigures.privateBytes()
        guard memory.usedBytes >= limit, isTime else { return }
        guard !memory.settledState.isSettled || shard.now >= memory.nextTrim else { return }
        memory.nextTrim = shard.now.advanced(byMilliseconds: Self.trimMilliseconds)
        // Returns freed memory that the C library keeps.
        hermes_trim_heap()
        memory.usedBytes = ProcessFigures.privateBytes()
    }

    /// Closes slow readers if much memory is missing, or newcomers have waited long enough. Without
    /// any, newcomers are admitted beside the state that takes the memory.
    private mutating func shedReaders(limit: Int, configured: Int) {
        let hasWaited = memory.patience.map { shard.now >= $0 } ?? false
        guard memory.pressure == .readers || hasWaited else { return }
        let target = hasWaited ? MemoryPressure.newcomers.endBytes(of: limit) : limit
        guard memory.usedBytes > target, shard.shedReaders(bytes: memory.usedBytes - target) == 0
        else { return }
        notices.logNothingToShed(used: memory.usedBytes, limit: configured, now: shard.now)
        guard hasWaited, memory.settledState.begins(used: memory.usedBytes, limit: configured)
        else { return }
        passLimits()
        setPressure(.none, limit: configured)
    }

    private mutating func setPressure(_ pressure: MemoryPressure, limit: Int) {
        guard pressure != memory.pressure else { return }
        if memory.pressure == .none {
            shard.counters.limits.add(.memory)
            memory.patience = shard.now.advanced(
                byMilliseconds: settings.limits.connectTimeout.wholeMilliseconds)
        }
        memory.pressure = pressure
        if pressure == .none { memory.patience = nil }
        if memory.settledState.isSettled, pressure == .none {
            notices.logSettledState(used: memory.usedBytes, limit: limit)
        } else {
            notices.logMemory(pressure, used: memory.usedBytes, limit: limit)
        }
        passLimits()
        updateAccepting()
    }

    /// Passes the limits to the shard: the configured ones, or tighter ones while memory is short.
    mutating func passLimits() {
        shard.limits = settings.limits
        shard.keepsNothingNew = memory.settledState.isSettled
        if memory.pressure >= .publishers {
            shard.limits.maxUnacknowledgedPublishBytes = max(
                1, settings.limits.maxUnacknowledgedPublishBytes / 16)
        }
    }

    /// Time of the next measurement without an event; `nil` unless memory is short.
    var memoryDeadline: MonotonicTime? {
        memory.pressure == .none && !memory.settledState.isSettled ? nil : memory.nextLook
    }

    /// Closes connections with incomplete packets, oldest packets first, until all together hold a
    /// little less than `bound`.
    private mutating func shedUnfinished(to bound: Int) {
        let excess = reactor.unfinishedBytes - bound
        // Visiting every connection is too dear for each turn, unless much has come since.
        let isMuch = excess > max(bound / 8, Self.mostExcess)
        guard excess > 0, isMuch || shard.now >= memory.nextShedding else { return }
        memory.nextShedding = shard.now.advanced(byMilliseconds: Self.lookMilliseconds)
        var left = reactor.unfinishedBytes
        for input in reactor.unfinishedInputs() {
            guard left > bound / 8 * 7 else { return }
            end(input.connection, .unfinishedPackets)
            left -= input.bytes
        }
    }

    /// Figures for status and metrics.
    var memoryFigures: MemoryFigures {
        MemoryFigures(
            usedBytes: settings.limits.memoryBytes == nil
                ? ProcessFigures.privateBytes() : memory.usedBytes,
            limitBytes: settings.limits.memoryBytes, pressure: memory.pressure.name,
            unfinishedBytes: reactor.unfinishedBytes,
            keepsNothingNew: memory.settledState.isSettled)
    }
}
