/// Entries by the time at which each is due, in 20 bytes each and in no order among those of one
/// tick.
///
/// Nobody takes an entry out before its time: that would cost an index as large again. The owner
/// looks an entry up when it comes out, and drops one that is of no use any more. When there are
/// twice as many entries as those that were of use last time, all are offered to the owner in turn
/// (``Step/moved(_:)``), who puts back what it needs. So the entries are at most twice those in use
/// and ``leastTidied`` more, and an entry costs a constant time, however many come and go.
///
/// Six levels of 64 slots, as in a radix heap: an entry lies at the level of the highest digit in
/// which its tick differs from the current one, and comes one level down, at least, when that digit
/// is reached. Nothing is copied when a slot grows, and a slot of any size is emptied in slices.
/// (Ahuja, Mehlhorn, Orlin and Tarjan, 1990: redistributive heaps; base 64.)
public struct ExpiryWheel: ~Copyable {
    /// What is to end, in the words of the owner.
    public struct Entry: BitwiseCopyable, Equatable {
        public let place: UInt32
        public let number: UInt32
        public let position: UInt32
        /// The time at which it is due is so many milliseconds before the end of its tick, in 6 bits,
        /// and its bytes are in 26.
        private var packed: UInt32
        fileprivate var tick: UInt32 = 0

        private static var mostBytes: UInt32 { 1 << 26 - 1 }

        /// Keeps at most 64 MiB less one of `bytes`.
        public init(place: UInt32, number: UInt32 = 0, position: UInt32 = 0, bytes: Int = 0) {
            self.place = place
            self.number = number
            self.position = position
            packed = min(UInt32(clamping: bytes), Self.mostBytes)
        }

        public var bytes: Int { Int(packed & Self.mostBytes) }

        fileprivate var early: Int64 {
            get { Int64(packed >> 26) }
            set { packed = packed & Self.mostBytes | UInt32(newValue) << 26 }
        }
    }

    /// What the owner is to do next.
    public enum Step: Equatable {
        /// The time of the entry has come; it has left the wheel.
        case due(Entry)
        /// The entry has left the wheel before its time: ``putBack(_:)`` takes it back, unless it is
        /// of no use any more.
        case moved(Entry)
        /// An entry of the present tick was looked at whose time has not come: ``restoreEarly()`` has to
        /// follow.
        case early
        /// Nothing is left to do at this time.
        case nothing
    }

    /// Entries in a chunk of memory.
    private struct Chunk: BitwiseCopyable {
        var next: UnsafeMutableRawPointer?
        var count: Int
    }

    public static var tickMilliseconds: Int64 { 64 }
    /// With fewer entries than these none is looked at before its time.
    public static var leastTidied: Int { 4_096 }
    private static var slotBits: UInt32 { 6 }
    private static var slotsPerLevel: Int { 64 }
    private static var levels: Int { 6 }
    private static var slotCount: Int { levels * slotsPerLevel }
    private static var chunkBytes: Int { 1_024 }
    private static var entriesPerChunk: Int {
        (chunkBytes - MemoryLayout<Chunk>.stride) / MemoryLayout<Entry>.stride
    }
    /// The first tick lies so long before the wheel's beginning, because a clock may be set back.
    private static var leadMs: Int64 { 365 * 86_400_000 }
    private static var leadTicks: UInt32 { UInt32(leadMs / tickMilliseconds) }
    /// A clock that goes back by fewer ticks is waited for.
    private static var patience: UInt32 { 16 }

    private let pool: BytePool
    private let slots: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    /// A bit for each slot of each level.
    private var occupied = InlineArray<6, UInt64>(repeating: 0)
    /// Entries whose digit has been reached, which come a level down.
    private var falling: UnsafeMutableRawPointer?
    /// Entries of the present tick that are not due yet.
    private var early: UnsafeMutableRawPointer?
    /// Entries of a slot that is being tidied.
    private var tidied: UnsafeMutableRawPointer?
    /// The next slot to tidy; `nil` while nothing is tidied.
    private var tidySlot: Int?
    /// Entries that were left when all had been looked at.
    private var tidyCount = 0
    /// UNIX time in milliseconds of tick 0.
    private var baseMs: Int64
    /// No entry lies in a slot of an earlier tick.
    private var current: UInt32 = leadTicks
    public private(set) var count = 0

    /// - Parameters:
    ///   - now: UNIX time in milliseconds.
    ///   - pool: must outlive the wheel, which gives it all its memory back only with
    ///     ``removeAll()``.
    public init(atMs now: Int64, pool: BytePool) {
        self.pool = pool
        baseMs = now - Self.leadMs
        slots = .allocate(capacity: Self.slotCount)
        slots.initialize(repeating: nil, count: Self.slotCount)
    }

    deinit { slots.deallocate() }

    public var isEmpty: Bool { count == 0 }

    // MARK: Adding

    /// Adds an entry that is due at a UNIX time in milliseconds, at most 64 ms late. One of a time
    /// more than seven years ahead is left out: it is added by a later start.
    public mutating func add(_ entry: Entry, atMs dueMs: Int64) {
        var entry = entry
        guard setTick(&entry, atMs: dueMs) else { return }
        insert(entry)
        if tidySlot == nil, count > 2 * tidyCount + Self.leastTidied { tidySlot = 0 }
    }

    /// False for a time that has no tick.
    private func setTick(_ entry: inout Entry, atMs dueMs: Int64) -> Bool {
        let ticks = (dueMs - baseMs + Self.tickMilliseconds - 1) / Self.tickMilliseconds
        guard ticks < Int64(UInt32.max) else { return false }
        entry.tick = UInt32(max(0, ticks))
        entry.early = max(0, min(Self.tickMilliseconds - 1, endMs(of: entry.tick) - dueMs))
        return true
    }

    /// The UNIX time in milliseconds at which a tick is over, and with it all that is due in it.
    private func endMs(of tick: UInt32) -> Int64 { baseMs + Int64(tick) * Self.tickMilliseconds }

    /// Takes an entry back that came out before its time.
    public mutating func putBack(_ entry: Entry) { insert(entry) }

    private mutating func insert(_ entry: Entry) {
        count += 1
        let (level, slot) = place(of: entry.tick)
        occupied[level] |= 1 << UInt64(slot)
        Self.push(entry, to: &slots[level * Self.slotsPerLevel + slot], pool)
    }

    /// The level and slot of a tick; what is due already lies with the current tick.
    private func place(of tick: UInt32) -> (level: Int, slot: Int) {
        guard tick > current else { return (0, digit(of: current, at: 0)) }
        let level = Int((31 - UInt32((tick ^ current).leadingZeroBitCount)) / Self.slotBits)
        return (level, digit(of: tick, at: level))
    }

    private func digit(of tick: UInt32, at level: Int) -> Int {
        Int(tick >> (UInt32(level) * Self.slotBits)) & (Self.slotsPerLevel - 1)
    }

    // MARK: Coming out

    /// The next step at a UNIX time in milliseconds. With `isExact` what is due comes out to the
    /// millisecond, for which the entries of the present tick are looked at.
    public mutating func next(atMs now: Int64, isExact: Bool = false) -> Step {
        guard count > 0 else {
            tidySlot = nil
            return .nothing
        }
        guard let tick = tick(atMs: now) else {
            restart(atMs: now)
            return next(atMs: now, isExact: isExact)
        }
        while true {
            if let entry = Self.pop(&falling, pool) {
                count -= 1
                return .moved(entry)
            }
            if let (level, slot, start) = first, start <= (isExact ? tick + 1 : tick) {
                current = max(current, start)
                let index = level * Self.slotsPerLevel + slot
                if level == 0 {
                    guard let entry = Self.pop(&slots[index], pool) else {
                        preconditionFailure("slot \(index) is marked and has no entry")
                    }
                    count -= 1
                    if slots[index] == nil { occupied[0] &= ~(1 << UInt64(slot)) }
                    guard endMs(of: entry.tick) - entry.early <= now else {
                        count += 1
                        Self.push(entry, to: &early, pool)
                        return .early
                    }
                    return .due(entry)
                }
                falling = takeSlot(index)
                continue
            }
            if let entry = Self.pop(&tidied, pool) {
                count -= 1
                return .moved(entry)
            }
            guard let slot = tidySlot else { return .nothing }
            if let next = (slot..<Self.slotCount).first(where: { slots[$0] != nil }) {
                tidied = takeSlot(next)
                tidySlot = next + 1
            } else {
                tidySlot = nil
                tidyCount = count
            }
        }
    }

    /// Puts entries back that were looked at too early.
    public mutating func restoreEarly() {
        while let entry = Self.pop(&early, pool) {
            count -= 1
            insert(entry)
        }
    }

    /// The UNIX time in milliseconds at which ``next(atMs:isExact:)`` has work; `now` when it has some at
    /// once, `nil` without entries.
    public func nextMs(atMs now: Int64) -> Int64? {
        guard count > 0 else { return nil }
        if falling != nil || tidied != nil || tidySlot != nil { return now }
        return first.map { max(now, endMs(of: $0.start)) } ?? now
    }

    /// The first slot with entries, and its first tick; `nil` when all are being moved.
    private var first: (level: Int, slot: Int, start: UInt32)? {
        for level in 0..<Self.levels where occupied[level] != 0 {
            let slot = occupied[level].trailingZeroBitCount
            let shift = UInt32(level) * Self.slotBits
            // The digits above are those of the current tick; of the last level there are none.
            let above = shift + Self.slotBits
            let prefix = above < 32 ? (current >> above) << above : 0
            return (level, slot, prefix | (UInt32(slot) << shift))
        }
        return nil
    }

    /// The tick of a time; `nil` when the clock was set so that the ticks have to begin anew.
    private func tick(atMs now: Int64) -> UInt32? {
        let ticks = (now - baseMs) / Self.tickMilliseconds
        guard now >= baseMs, ticks < Int64(UInt32.max) / 2,
            UInt32(ticks) >= current || current - UInt32(ticks) <= Self.patience
        else { return nil }
        return UInt32(ticks)
    }

    /// Gives every entry the tick that it has on a clock that was set.
    private mutating func restart(atMs now: Int64) {
        let formerMs = baseMs
        var all: UnsafeMutableRawPointer?
        for index in 0..<Self.slotCount where slots[index] != nil {
            Self.join(takeSlot(index), to: &all)
        }
        Self.join(falling.take(), to: &all)
        Self.join(tidied.take(), to: &all)
        Self.join(early.take(), to: &all)
        if tidySlot != nil { tidySlot = 0 }
        baseMs = now - Self.leadMs
        current = Self.leadTicks
        count = 0
        while var entry = Self.pop(&all, pool) {
            let dueMs = formerMs + Int64(entry.tick) * Self.tickMilliseconds - entry.early
            // One that is now beyond seven years is left out, as it would be by add.
            guard setTick(&entry, atMs: dueMs) else { continue }
            insert(entry)
        }
    }

    /// Removes all entries.
    public mutating func removeAll() {
        for index in 0..<Self.slotCount { Self.free(takeSlot(index), pool) }
        Self.free(falling.take(), pool)
        Self.free(tidied.take(), pool)
        Self.free(early.take(), pool)
        (count, tidyCount, tidySlot) = (0, 0, nil)
    }

    // MARK: Chunks

    private static func header(_ chunk: UnsafeMutableRawPointer) -> UnsafeMutablePointer<Chunk> {
        chunk.assumingMemoryBound(to: Chunk.self)
    }

    private static func entries(_ chunk: UnsafeMutableRawPointer) -> UnsafeMutablePointer<Entry> {
        (chunk + MemoryLayout<Chunk>.stride).assumingMemoryBound(to: Entry.self)
    }

    private static func append(_ entry: Entry, to chunk: UnsafeMutableRawPointer) {
        (entries(chunk) + header(chunk).pointee.count).initialize(to: entry)
        header(chunk).pointee.count += 1
    }

    /// Puts an entry into a list of chunks.
    private static func push(
        _ entry: Entry, to list: inout UnsafeMutableRawPointer?, _ pool: BytePool
    ) {
        if let first = list, header(first).pointee.count < entriesPerChunk {
            append(entry, to: first)
        } else {
            let chunk = pool.allocate(chunkBytes)
            header(chunk).initialize(to: Chunk(next: list, count: 0))
            append(entry, to: chunk)
            list = chunk
        }
    }

    /// Takes an entry out of a list of chunks.
    private static func pop(
        _ list: inout UnsafeMutableRawPointer?, _ pool: BytePool
    ) -> Entry? {
        guard let chunk = list else { return nil }
        header(chunk).pointee.count -= 1
        let entry = entries(chunk)[header(chunk).pointee.count]
        if header(chunk).pointee.count == 0 {
            list = header(chunk).pointee.next
            pool.deallocate(chunk, count: chunkBytes)
        }
        return entry
    }

    private mutating func takeSlot(_ index: Int) -> UnsafeMutableRawPointer? {
        occupied[index / Self.slotsPerLevel] &= ~(1 << UInt64(index % Self.slotsPerLevel))
        return slots[index].take()
    }

    private static func join(
        _ list: UnsafeMutableRawPointer?, to all: inout UnsafeMutableRawPointer?
    ) {
        guard let list else { return }
        var last = list
        while let next = header(last).pointee.next { last = next }
        header(last).pointee.next = all
        all = list
    }

    private static func free(_ list: UnsafeMutableRawPointer?, _ pool: BytePool) {
        var list = list
        while let chunk = list {
            list = header(chunk).pointee.next
            pool.deallocate(chunk, count: chunkBytes)
        }
    }
}
