/// The rule of a time zone for all years to come: the text of the POSIX variable TZ, with hours up to
/// 167 (RFC 9636, section 3.3.1), such as `CET-1CEST,M3.5.0,M10.5.0/3`.
struct ZoneFooter: Sendable, Equatable {
    /// The day of a year.
    private enum Day: Equatable {
        /// The week 1 to 5, where 5 is the last, and the weekday, 0 for Sunday.
        case week(month: Int64, week: Int64, weekday: Int64)
        /// 1 to 365; 29 February is never counted.
        case withoutLeapDay(Int64)
        /// 0 to 365.
        case ofYear(Int64)
    }

    private struct Change: Equatable {
        let day: Day
        /// Seconds after midnight, by the clock before it is set.
        let time: Int64
    }

    private struct Summer: Equatable {
        let offset: Int64
        let begin: Change
        let end: Change
    }

    private let standard: Int64
    private var summer: Summer?

    init?(_ text: some Collection<UInt8>) {
        var parser = Parser(Array(text))
        guard parser.name(), let west = parser.time(most: 24) else { return nil }
        standard = -west
        guard !parser.isAtEnd else { return }
        guard parser.name() else { return nil }
        var offset = standard + 3_600
        if !parser.isAt(",") {
            guard let west = parser.time(most: 24) else { return nil }
            offset = -west
        }
        guard parser.take(","), let begin = parser.change(), parser.take(","),
            let end = parser.change(), parser.isAtEnd
        else { return nil }
        summer = Summer(offset: offset, begin: begin, end: end)
    }

    func offset(at time: Int64) -> Int64 {
        guard let summer else { return standard }
        let (begin, end) = changes(in: Self.year(of: time + standard), summer)
        let isSummer =
            begin < end ? begin <= time && time < end : !(end <= time && time < begin)
        return isSummer ? summer.offset : standard
    }

    func nextChange(after time: Int64) -> Int64? {
        guard let summer else { return nil }
        let year = Self.year(of: time + standard)
        return (year - 1...year + 1).flatMap { year -> [Int64] in
            let (begin, end) = changes(in: year, summer)
            return [begin, end]
        }.filter { $0 > time }.min()
    }

    private func changes(in year: Int64, _ summer: Summer) -> (begin: Int64, end: Int64) {
        (
            Self.midnight(summer.begin.day, in: year) + summer.begin.time - standard,
            Self.midnight(summer.end.day, in: year) + summer.end.time - summer.offset
        )
    }

    // MARK: The calendar

    /// Days from 1970-01-01 to a day of the Gregorian calendar.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        // Years begin in March here, so that a leap day is the last of one.
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    private static func year(of time: Int64) -> Int64 {
        let day = floor(time, 86_400)
        var year = 1_970 + floor(day, 366)
        while days(year, 1, 1) > day { year -= 1 }
        while days(year + 1, 1, 1) <= day { year += 1 }
        return year
    }

    private static func floor(_ value: Int64, _ unit: Int64) -> Int64 {
        value / unit - (value % unit < 0 ? 1 : 0)
    }

    private static func isLeap(_ year: Int64) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    /// The time at which a day begins at Greenwich.
    private static func midnight(_ day: Day, in year: Int64) -> Int64 {
        switch day {
        case .ofYear(let number): return 86_400 * (days(year, 1, 1) + number)
        case .withoutLeapDay(let number):
            let leap: Int64 = isLeap(year) && number >= 60 ? 1 : 0
            return 86_400 * (days(year, 1, 1) + number - 1 + leap)
        case .week(let month, let week, let weekday):
            let first = days(year, month, 1)
            // 1970-01-01 was a Thursday.
            let weekdayOfFirst = ((first + 4) % 7 + 7) % 7
            var place = first + (weekday - weekdayOfFirst + 7) % 7 + 7 * (week - 1)
            let next = month == 12 ? days(year + 1, 1, 1) : days(year, month + 1, 1)
            if place >= next { place -= 7 }
            return 86_400 * place
        }
    }

    // MARK: The text

    private struct Parser {
        let bytes: [UInt8]
        var place = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        var isAtEnd: Bool { place == bytes.count }
        private var current: UInt8? { place < bytes.count ? bytes[place] : nil }

        func isAt(_ character: Unicode.Scalar) -> Bool { current == UInt8(ascii: character) }

        mutating func take(_ character: Unicode.Scalar) -> Bool {
            guard isAt(character) else { return false }
            place += 1
            return true
        }

        /// Passes over a name: letters, or anything between `<` and `>`.
        mutating func name() -> Bool {
            if take("<") {
                while let byte = current, byte != UInt8(ascii: ">") { place += 1 }
                return take(">")
            }
            let begin = place
            while let byte = current, (0x41...0x5A).contains(byte & 0xDF) { place += 1 }
            return place > begin
        }

        mutating func number(_ range: ClosedRange<Int64>) -> Int64? {
            var value: Int64 = 0
            let begin = place
            while let byte = current, (0x30...0x39).contains(byte), place < begin + 3 {
                value = 10 * value + Int64(byte - 0x30)
                place += 1
            }
            return place > begin && range.contains(value) ? value : nil
        }

        /// Seconds of `[+-]hh[:mm[:ss]]`.
        mutating func time(most hours: Int64) -> Int64? {
            let isNegative = take("-")
            if !isNegative { _ = take("+") }
            guard let hour = number(0...hours) else { return nil }
            var value = 3_600 * hour
            for unit: Int64 in [60, 1] where take(":") {
                guard let part = number(0...59) else { return nil }
                value += unit * part
            }
            return isNegative ? -value : value
        }

        mutating func change() -> Change? {
            guard let day = day() else { return nil }
            guard take("/") else { return Change(day: day, time: 7_200) }
            return time(most: 167).map { Change(day: day, time: $0) }
        }

        private mutating func day() -> Day? {
            if take("M") {
                guard let month = number(1...12), take("."), let week = number(1...5), take("."),
                    let weekday = number(0...6)
                else { return nil }
                return .week(month: month, week: week, weekday: weekday)
            }
            if take("J") { return number(1...365).map { .withoutLeapDay($0) } }
            return number(0...365).map { .ofYear($0) }
        }
    }
}
