import PlainText
import Testing

@Suite("UTCTime and CivilTime")
struct UTCTimeTests {
    @Test(
        "times read back as they are written",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2025-01-31T08:00:00Z", 1_738_310_400),
            ("2024-02-29T23:59:59Z", 1_709_251_199), ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] as [(String, Int64)])
    func times(text: String, seconds: Int64) throws {
        #expect(try #require(UTCTime(text)).unixSeconds == seconds)
        #expect(UTCTime(clamping: seconds).description == text)
    }

    @Test(
        "other text is no time",
        arguments: [
            "", "2025-01-31", "2025-01-31T08:00:00", "2025-01-31T08:00:00z", "2025-01-31 08:00:00Z",
            "2025-02-29T08:00:00Z", "2025-13-01T08:00:00Z", "2025-01-31T24:00:00Z",
            "2025-01-31T08:60:00Z", "1969-12-31T23:59:59Z", "2025-01-31T08:00:0 Z",
            "aaaa-aa-aaTaa:aa:aaZ", "2025-01-31T08:00:00+", "-025-01-31T08:00:00Z",
        ])
    func wrongTimes(text: String) {
        #expect(UTCTime(text) == nil)
    }

    @Test(
        "dates, clocks and weekdays are those of the calendar, before 1970 too",
        arguments: [
            (0, "1970-01-01 00:00:00", 4), (-1, "1969-12-31 23:59:59", 3),
            (951_782_400, "2000-02-29 00:00:00", 2), (4_107_542_400, "2100-03-01 00:00:00", 1),
            (784_111_777, "1994-11-06 08:49:37", 0), (-62_167_219_200, "0000-01-01 00:00:00", 6),
        ] as [(Int64, String, Int64)])
    func calendar(seconds: Int64, text: String, weekday: Int64) {
        let time = CivilTime(unixSeconds: seconds)
        var bytes: [UInt8] = []
        time.appendDate(to: &bytes)
        bytes.append(UInt8(ascii: " "))
        time.appendClock(to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == text)
        #expect(time.weekday == weekday)
    }
}
