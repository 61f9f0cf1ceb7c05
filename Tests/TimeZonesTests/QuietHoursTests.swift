import SystemFiles
import Testing

@testable import TimeZones

@Suite("Quiet hours by the clocks of a time zone")
struct QuietHoursTests {
    /// The system's data of a zone.
    private static func zone(_ name: String) throws -> ZoneRules {
        let file = try WholeFile("/usr/share/zoneinfo/\(name)", maximumByteCount: 65_536)
        return try #require(ZoneRules(file.bytes))
    }

    @Test(
        "offsets and changes are those of the system, also after the last that its data names",
        arguments: [
            // Times by date(1).
            ("Europe/Berlin", 1_793_407_600, 3_600), ("Europe/Berlin", 1_782_000_000, 7_200),
            ("America/New_York", 1_793_511_999, -14_400),
            ("America/New_York", 1_793_512_800, -18_000),
            ("Asia/Kolkata", 1_782_000_000, 19_800), ("Asia/Shanghai", 1_782_000_000, 28_800),
            ("Australia/Lord_Howe", 1_782_000_000, 37_800),
            ("Australia/Lord_Howe", 1_796_000_000, 39_600),
            // 2060-01-15 and 2060-07-15, behind all tables.
            ("Europe/Berlin", 2_841_652_800, 3_600), ("Europe/Berlin", 2_857_377_600, 7_200),
            ("Australia/Sydney", 2_841_652_800, 39_600),
            ("Australia/Sydney", 2_857_377_600, 36_000),
            ("America/Santiago", 2_841_652_800, -10_800),
            ("America/Santiago", 2_857_377_600, -14_400),
        ])
    func offsets(_ name: String, _ time: Int64, _ offset: Int64) throws {
        #expect(try Self.zone(name).offset(at: time) == offset)
        let file = try WholeFile("/usr/share/zoneinfo/\(name)", maximumByteCount: 65_536)
        let cut = try #require(ZoneRules(file.bytes, since: time - 86_400))
        #expect(cut.offset(at: time) == offset)
        #expect(cut.nextChange(after: time) == (try Self.zone(name).nextChange(after: time)))
    }

    /// 2026-10-25 in Berlin: clocks go from 03:00 to 02:00 at 01:00 UTC.
    private static let autumn: Int64 = 1_792_890_000
    /// 2027-03-28 in Berlin: from 02:00 to 03:00 at 01:00 UTC.
    private static let spring: Int64 = 1_806_195_600

    @Test("quiet hours end when the clock says so")
    func usual() throws {
        let zone = try Self.zone("Europe/Berlin")
        let hours = try #require(QuietHours("22:00-07:00"))
        // 2026-11-26 21:59:59, 22:00:00, 06:59:59 and 07:00:00 in Berlin (UTC+1).
        let evening: Int64 = 1_795_726_800
        #expect(hours.end(at: evening - 1, in: zone) == nil)
        #expect(hours.end(at: evening, in: zone) == evening + 9 * 3_600)
        #expect(hours.end(at: evening + 9 * 3_600 - 1, in: zone) == evening + 9 * 3_600)
        #expect(hours.end(at: evening + 9 * 3_600, in: zone) == nil)
        let noon = try #require(QuietHours("12:00-13:30"))
        #expect(noon.end(at: evening, in: zone) == nil)
        #expect(noon.end(at: evening - 10 * 3_600, in: zone) == evening - 8 * 3_600 - 1_800)
        // It is another time in Kolkata, half an hour off.
        let kolkata = try Self.zone("Asia/Kolkata")
        #expect(hours.end(at: evening, in: kolkata) == evening + 4 * 3_600 + 1_800)
    }

    @Test("nights in which clocks are set are an hour longer or shorter")
    func changes() throws {
        let zone = try Self.zone("Europe/Berlin")
        let hours = try #require(QuietHours("22:00-07:00"))
        // 22:00 in summer is five hours before, 07:00 in winter five hours after.
        #expect(hours.end(at: Self.autumn - 5 * 3_600, in: zone) == Self.autumn + 5 * 3_600)
        #expect(hours.end(at: Self.spring - 4 * 3_600, in: zone) == Self.spring + 4 * 3_600)
        #expect(hours.end(at: Self.autumn, in: zone) == Self.autumn + 5 * 3_600)
    }

    @Test(
        "an end that the clock leaves out comes when it is set, and one that comes twice is twice")
    func edges() throws {
        let zone = try Self.zone("Europe/Berlin")
        let hours = try #require(QuietHours("22:00-02:30"))
        // There is no 02:30 in spring: at 02:00 the clock shows 03:00.
        #expect(hours.end(at: Self.spring - 3_600, in: zone) == Self.spring)
        // In autumn 02:30 comes half an hour before the change, and again half an hour after it.
        #expect(hours.end(at: Self.autumn - 3_600, in: zone) == Self.autumn - 1_800)
        #expect(hours.end(at: Self.autumn - 1_800, in: zone) == nil)
        #expect(hours.end(at: Self.autumn, in: zone) == Self.autumn + 1_800)
        let between = try #require(QuietHours("02:00-03:00"))
        #expect(between.end(at: Self.spring - 1, in: zone) == nil)
        #expect(between.end(at: Self.spring, in: zone) == nil)
        #expect(between.end(at: Self.autumn - 3_600, in: zone) == Self.autumn + 3_600)
    }

    @Test("hours are read as they are written, and nothing else is")
    func texts() {
        for text in ["22:00-07:00", "00:00-23:59", "09:05-09:04"] {
            #expect(QuietHours(text)?.text == text)
        }
        for text in [
            "", "22:00", "22-07", "22:00-22:00", "24:00-07:00", "22:60-07:00", "2:00-07:00",
            "22:00-07:00-", "-22:00-07:00", "22:00 07:00", "aa:bb-cc:dd",
        ] {
            #expect(QuietHours(text) == nil, "\(text)")
        }
    }

    @Test("damaged data is none, wherever it is cut or changed")
    func damage() throws {
        let file = try WholeFile("/usr/share/zoneinfo/Europe/Berlin", maximumByteCount: 65_536)
        for count in 0..<file.bytes.count {
            #expect(ZoneRules(Array(file.bytes.prefix(count))) == nil, "\(count) bytes")
        }
        for place in file.bytes.indices {
            var bytes = file.bytes
            bytes[place] ^= 0xFF
            guard let rules = ZoneRules(bytes) else { continue }
            // Whatever it says, it ends, and is within a day and a little more.
            let offset = rules.offset(at: Self.autumn)
            #expect((-93_599...93_599).contains(offset) || abs(offset) <= 90_000)
            _ = QuietHours("22:00-07:00")?.end(at: Self.autumn, in: rules)
        }
        #expect(ZoneRules([]) == nil)
    }

    @Test("the rule for years to come has its forms, and no others")
    func footers() throws {
        func footer(_ text: String) -> ZoneFooter? { ZoneFooter(Array(text.utf8)) }
        #expect(footer("UTC0")?.offset(at: 0) == 0)
        #expect(footer("<-03>3")?.offset(at: 0) == -10_800)
        #expect(footer("<+0530>-5:30")?.offset(at: 0) == 19_800)
        // Greenland's summer begins and ends in hours of the day before.
        let nuuk = try #require(footer("<-02>2<-01>,M3.5.0/-1,M10.5.0/0"))
        #expect(nuuk.offset(at: Self.spring - 1) == -7_200)
        #expect(nuuk.offset(at: Self.spring) == -3_600)
        #expect(footer("A0B,J60,J300")?.nextChange(after: 0) == Int64(5_104_800))
        #expect(footer("A0B,59,300/167")?.nextChange(after: 0) == Int64(5_104_800))
        for text in [
            "", "0", "CET", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
            "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J300",
            "CET-1CEST,M3.5.0,M10.5.0/168", "CET-1CEST,M3.5.0,M10.5.0x", "<CET-1", "CET-1:60",
        ] {
            #expect(footer(text) == nil, "\(text)")
        }
    }
}
