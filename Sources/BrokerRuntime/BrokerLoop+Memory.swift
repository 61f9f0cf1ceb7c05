import BrokerAPI
import BrokerCore
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
    /// Bytes received until the last measurement.
    var receivedBytes: UInt64 = 0
    /// Until this time, closing connections with incomplete packets is not tried again.
    var nextShedding = MonotonicTime(milliseconds: 0)
}

/// Reactions to a shortage of memory, in this order: new connections wait, incomplete packets and
/// large publishers are limited, slow readers are closed. Clients that read and finish their
/// packets are not affected.
extension BrokerLoop {
    private static var lookMilliseconds: UInt64 { 250 }
    /// A measurement takes about 10 us; this much input makes another one worthwhile.
    private static var lookBytes: UInt64 { 16 * 1_024 * 1_024 }

    /// Measures if it is time, and closes connections if memory is short.
    mutating func watchMemory() {
        lookAtMemory()
        let isShort = memory.pressure >= .publishers
        let bound = settings.limits.unfinishedBytes / (isShort ? 8 : 1)
        shedUnfinished(to: bound)
        reactor.heldBackBound = bound
    }

    private mutating func lookAtMemory() {
        guard let limit = settings.limits.memoryBytes else {
            setPressure(.none)
            return
        }
        let isTime = shard.now >= memory.nextLook
        guard isTime || reactor.bytesReceived &- memory.receivedBytes >= Self.lookBytes
        else { return }
        memory.nextLook = shard.now.advanced(byMilliseconds: Self.lookMilliseconds)
        memory.receivedBytes = reactor.bytesReceived
        memory.usedBytes = ProcessFigures.privateBytes()
        if memory.usedBytes >= limit, isTime {
            // Returns freed memory that the C library keeps.
            hermes_trim_heap()
            memory.usedBytes = ProcessFigures.privateBytes()
        }
        setPressure(memory.pressure.next(used: memory.usedBytes, limit: limit))
        if memory.pressure >= .newcomers { shard.shedNewcomers() }
        guard memory.pressure == .readers, isTime else { return }
        if shard.shedReaders(bytes: memory.usedBytes - limit) == 0 {
            notices.logNothingToShed(used: memory.usedBytes, limit: limit, now: shard.now)
        }
    }

    private mutating func setPressure(_ pressure: MemoryPressure) {
        guard pressure != memory.pressure else { return }
        if memory.pressure == .none { shard.counters.limits.add(.memory) }
        memory.pressure = pressure
        notices.logMemory(pressure, used: memory.usedBytes, limit: settings.limits.memoryBytes ?? 0)
        passLimits()
        updateAccepting()
    }

    /// Passes the limits to the shard: the configured ones, or tighter ones while memory is short.
    mutating func passLimits() {
        shard.limits = settings.limits
        if memory.pressure >= .publishers {
            shard.limits.maxUnacknowledgedPublishBytes = max(
                1, settings.limits.maxUnacknowledgedPublishBytes / 16)
        }
    }

    /// Time of the next measurement without an event; `nil` unless memory is short.
    var memoryDeadline: MonotonicTime? {
        memory.pressure == .none ? nil : memory.nextLook
    }

    /// Closes connections with incomplete packets, oldest packets first, until all together hold a
    /// little less than `bound`.
    private mutating func shedUnfinished(to bound: Int) {
        guard reactor.unfinishedBytes > bound, shard.now >= memory.nextShedding else { return }
        // Visiting every connection is too dear for each turn.
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
            unfinishedBytes: reactor.unfinishedBytes)
    }
}
