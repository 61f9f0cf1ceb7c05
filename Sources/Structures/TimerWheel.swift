/// Timers for any number of owners; setting, moving and cancelling one takes constant time.
///
/// The wheel has 4,096 slots of 64 ms. A timer is handed out in the first turn after its deadline's
/// slot has passed: at most 64 ms late, never early. A deadline beyond one lap (262 s) waits in its
/// slot and is passed over once per lap. (Varghese and Lauck, 1987: scheme 6, with hashed slots.)
public struct TimerWheel: ~Copyable {
    struct Timer: BitwiseCopyable {
        var links = ListLinks()
        /// The timer is due once this tick has come.
        var tick: UInt64
        var payload: UInt64
    }

    private enum InSlot: ListField {
        static subscript(timer: UnsafeMutablePointer<Timer>) -> ListLinks {
            get { timer.pointee.links }
            set { timer.pointee.links = newValue }
        }
    }

    public static var tickMilliseconds: UInt64 { 64 }
    private static var slotCount: Int { 4_096 }
    /// Index of the list of timers that are due.
    private static var dueSlot: Int { slotCount }

    private var timers = Slab<Timer>()
    private var lists = [IntrusiveList<InSlot>](repeating: .init(), count: slotCount + 1)
    private var occupied = [UInt64](repeating: 0, count: slotCount / 64)
    /// The last tick whose timers have been moved to the due list.
    private var currentTick: UInt64

    public init(now: MonotonicTime) {
        currentTick = now.milliseconds / Self.tickMilliseconds
    }

    public var count: Int { timers.count }

    /// Sets a timer. Once due, its `payload` is returned by ``popExpired(now:)``, which also
    /// removes the timer.
    public mutating func schedule(_ payload: UInt64, at deadline: MonotonicTime) -> UInt32 {
        let index = timers.insert(Timer(tick: 0, payload: payload))
        place(index, at: deadline)
        return index
    }

    public mutating func reschedule(_ index: UInt32, at deadline: MonotonicTime) {
        unlink(index)
        place(index, at: deadline)
    }

    public mutating func cancel(_ index: UInt32) {
        unlink(index)
        timers.remove(index)
    }

    /// Removes one due timer and returns its payload; `nil` when none is due.
    public mutating func popExpired(now: MonotonicTime) -> UInt64? {
        let tick = now.milliseconds / Self.tickMilliseconds
        if currentTick < tick { collect(upTo: tick) }
        let index = lists[Self.dueSlot].first
        guard index != noIndex else { return nil }
        let payload = timers[index].payload
        unlink(index)
        timers.remove(index)
        return payload
    }

    /// The earliest time at which ``popExpired(now:)`` may return a timer; `nil` without timers.
    public var nextDeadline: MonotonicTime? {
        if !lists[Self.dueSlot].isEmpty {
            return MonotonicTime(milliseconds: currentTick * Self.tickMilliseconds)
        }
        guard timers.count > 0 else { return nil }
        // Word by word around the wheel, beginning behind the current slot.
        let first = currentTick + 1
        var tick = first
        while tick - first <= UInt64(Self.slotCount) {
            let slot = Int(tick & UInt64(Self.slotCount - 1))
            let later = occupied[slot / 64] >> UInt64(slot & 63)
            if later != 0 {
                tick += UInt64(later.trailingZeroBitCount)
                return MonotonicTime(milliseconds: tick * Self.tickMilliseconds)
            }
            tick += UInt64(64 - (slot & 63))
        }
        return nil
    }

    /// Moves all timers that are due at `tick` to the due list.
    private mutating func collect(upTo tick: UInt64) {
        let first = max(
            currentTick + 1, tick >= UInt64(Self.slotCount) ? tick - UInt64(Self.slotCount) + 1 : 0)
        currentTick = tick
        var passing = first
        while passing <= tick {
            let slot = Int(passing & UInt64(Self.slotCount - 1))
            passing += 1
            guard occupied[slot / 64] & 1 << UInt64(slot & 63) != 0 else { continue }
            var index = lists[slot].first
            while index != noIndex {
                let next = timers[index].links.next
                if timers[index].tick <= tick {
                    unlink(index, slot)
                    link(index, Self.dueSlot)
                }
                index = next
            }
        }
    }

    private mutating func place(_ index: UInt32, at deadline: MonotonicTime) {
        // The tick that begins after the deadline, so that no timer fires early.
        let tick = deadline.milliseconds / Self.tickMilliseconds + 1
        timers[index].tick = tick
        link(index, slot(ofTick: tick))
    }

    /// The due list holds the timers whose tick has come.
    private func slot(ofTick tick: UInt64) -> Int {
        tick <= currentTick ? Self.dueSlot : Int(tick & UInt64(Self.slotCount - 1))
    }

    private mutating func link(_ index: UInt32, _ slot: Int) {
        lists[slot].prepend(index, in: timers)
        if slot < Self.slotCount { occupied[slot / 64] |= 1 << UInt64(slot & 63) }
    }

    private mutating func unlink(_ index: UInt32) {
        unlink(index, slot(ofTick: timers[index].tick))
    }

    private mutating func unlink(_ index: UInt32, _ slot: Int) {
        lists[slot].remove(index, in: timers)
        if slot < Self.slotCount, lists[slot].isEmpty {
            occupied[slot / 64] &= ~(1 << UInt64(slot & 63))
        }
    }
}
