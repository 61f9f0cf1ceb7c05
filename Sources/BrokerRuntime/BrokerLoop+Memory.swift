import BrokerAPI
import BrokerCore
import CLinux
import Structures
import Transport

/// What the loop knows of the memory that the process uses.
struct MemoryWatch {
    var pressure = MemoryPressure.none
    /// Private memory of the process, when it was last measured.
    var usedBytes = 0
    /// When it is measured again, if there is a turn.
    var nextLook = MonotonicTime(milliseconds: 0)
    /// What had been received at the last measurement.
    var receivedBytes: UInt64 = 0
    /// Unfinished packets could not be shed any further: not tried again before.
    var nextShedding = MonotonicTime(milliseconds: 0)
}

/// Memory that runs short, and what is given up for it, in a stated order: newcomers, unfinished packets
/// and large publishers, slow readers. Clients that read and finish their packets lose nothing.
extension BrokerLoop {
    private static var lookMilliseconds: UInt64 { 250 }
    /// A measurement costs some 10 us: so many bytes from clients are worth one at any time.
    private static var lookBytes: UInt64 { 16 * 1_024 * 1_024 }

    /// Measures when it is time for that, and sheds what has to go.
    mutating func watchMemory() {
        lookAtMemory()
        let isShort = memory.pressure >= .publishers
        shedUnfinished(to: settings.limits.unfinishedBytes / (isShort ? 8 : 1))
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
            // What the C library keeps of what was freed is no use of ours.
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

    /// The shard's limits: as they are set, and tighter while memory is short.
    mutating func passLimits() {
        shard.limits = settings.limits
        if memory.pressure >= .publishers {
            shard.limits.maxUnacknowledgedPublishBytes = max(
                1, settings.limits.maxUnacknowledgedPublishBytes / 16)
        }
    }

    /// When memory is looked at again without an event: only while it is short.
    var memoryDeadline: MonotonicTime? {
        memory.pressure == .none ? nil : memory.nextLook
    }

    /// Closes connections that hold the begin of a packet, of those that have held it longest first, until
    /// a little less than `bound` is held together.
    private mutating func shedUnfinished(to bound: Int) {
        guard reactor.heldInputBytes > bound, shard.now >= memory.nextShedding else { return }
        // Looking at every connection is nothing for every turn.
        memory.nextShedding = shard.now.advanced(byMilliseconds: Self.lookMilliseconds)
        var left = reactor.heldInputBytes
        for input in reactor.unfinishedInputs() {
            guard left > bound / 8 * 7 else { return }
            // What the shard does not take yet waits for us, not for its client.
            guard
                !shard.holdsInput(input.connection) || shard.isConnectWaiting(input.connection)
            else { continue }
            end(input.connection, .unfinishedPackets)
            left -= input.bytes
        }
    }

    /// For status and metrics.
    var memoryFigures: MemoryFigures {
        MemoryFigures(
            usedBytes: settings.limits.memoryBytes == nil
                ? ProcessFigures.privateBytes() : memory.usedBytes,
            limitBytes: settings.limits.memoryBytes, pressure: memory.pressure.name,
            unfinishedBytes: reactor.heldInputBytes)
    }
}
