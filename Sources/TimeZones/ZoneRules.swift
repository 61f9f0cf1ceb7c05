/// When clocks of a time zone are set, as a file of the system's zone data says (TZif, RFC 9636).
///
/// Times are UNIX seconds, offsets seconds east of Greenwich.
public struct ZoneRules: Sendable, Equatable {
    /// The zone of Greenwich, which needs no file.
    public static let utc = ZoneRules()

    /// The most bytes of a file, and entries of one of its lists.
    public static let mostBytes = 65_536
    private static let mostEntries = 8_192
    /// Offsets beyond a day and a little more are damage (RFC 9636, section 3.2).
    private static let offsets: ClosedRange<Int64> = -93_599...93_599

    /// Times at which clocks are set, in rising order, with the offsets from then on.
    private var times: [Int64] = []
    private var offsetsFrom: [Int32] = []
    /// The offset before the first.
    private var first: Int32 = 0
    /// What holds after the last.
    private var footer: ZoneFooter?

    private init() {}

    /// Reads a file's bytes; `nil` when they are none of zone data. What was before `since` is left out.
    public init?(_ bytes: [UInt8], since: Int64 = .min) {
        guard bytes.count <= Self.mostBytes, let old = Block(bytes, at: 0, timeBytes: 4) else {
            return nil
        }
        var block = old
        if old.version >= 0x32 {
            guard let new = Block(bytes, at: old.end, timeBytes: 8) else { return nil }
            block = new
            // The footer stands between two line feeds, and may be empty.
            let rest = bytes[new.end...]
            guard rest.first == 0x0A, let end = rest.dropFirst().firstIndex(of: 0x0A) else {
                return nil
            }
            let text = rest[(new.end + 1)..<end]
            if !text.isEmpty {
                guard let read = ZoneFooter(text) else { return nil }
                footer = read
            }
        }
        first = block.types.first ?? 0
        for (time, type) in zip(block.times, block.kinds) {
            guard time > times.last ?? .min else { return nil }
            if time < since {
                first = block.types[type]
            } else {
                times.append(time)
                offsetsFrom.append(block.types[type])
            }
        }
    }

    /// Seconds that clocks are ahead of Greenwich at a time.
    public func offset(at time: Int64) -> Int64 {
        if let footer, time >= times.last ?? .min { return footer.offset(at: time) }
        // The first change after the time.
        var (low, high) = (0, times.count)
        while low < high {
            let middle = (low + high) / 2
            if times[middle] <= time { low = middle + 1 } else { high = middle }
        }
        return Int64(low == 0 ? first : offsetsFrom[low - 1])
    }

    /// The next time after another at which clocks may be set; `nil` for never.
    public func nextChange(after time: Int64) -> Int64? {
        if let next = times.first(where: { $0 > time }) { return next }
        return footer?.nextChange(after: time)
    }

    /// A header and what follows it.
    private struct Block {
        let version: UInt8
        var times: [Int64] = []
        var kinds: [Int] = []
        var types: [Int32] = []
        let end: Int

        init?(_ bytes: [UInt8], at start: Int, timeBytes: Int) {
            let header = 44
            guard bytes.count >= start + header,
                bytes[start..<(start + 4)].elementsEqual("TZif".utf8)
            else { return nil }
            version = bytes[start + 4]
            func number(_ place: Int, _ count: Int) -> Int64 {
                let value = bytes[place..<(place + count)].reduce(UInt64(0)) {
                    $0 << 8 | UInt64($1)
                }
                let unused = UInt64(64 - 8 * count)
                return Int64(bitPattern: value << unused) >> Int64(unused)
            }
            let counts = (0..<6).map { number(start + 20 + 4 * $0, 4) }
            guard counts.allSatisfy({ (0...Int64(ZoneRules.mostEntries)).contains($0) }) else {
                return nil
            }
            let (isUTC, isStandard, leaps) = (Int(counts[0]), Int(counts[1]), Int(counts[2]))
            let (timeCount, typeCount, letters) = (Int(counts[3]), Int(counts[4]), Int(counts[5]))
            let timesAt = start + header
            let kindsAt = timesAt + timeBytes * timeCount
            let typesAt = kindsAt + timeCount
            end =
                typesAt + 6 * typeCount + letters + leaps * (timeBytes + 4) + isStandard + isUTC
            guard typeCount > 0, bytes.count >= end else { return nil }
            for index in 0..<typeCount {
                let offset = number(typesAt + 6 * index, 4)
                guard ZoneRules.offsets.contains(offset) else { return nil }
                types.append(Int32(offset))
            }
            for index in 0..<timeCount {
                let kind = Int(bytes[kindsAt + index])
                guard kind < typeCount else { return nil }
                times.append(number(timesAt + timeBytes * index, timeBytes))
                kinds.append(kind)
            }
        }
    }
}
