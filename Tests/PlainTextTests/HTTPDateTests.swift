import PlainText
import Testing

@Suite("Dates of HTTP")
struct HTTPDateTests {
    @Test(
        "each of the three forms is read",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Sun Nov 16 08:49:37 1994", 784_975_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Thursday, 01-Jan-70 00:00:00 GMT", 3_155_760_000),
        ] as [(String, Int64)])
    func read(text: String, seconds: Int64) {
        // In 2026: 1994 is more than 50 years ahead as 2094, and 2070 is not.
        #expect(HTTPDateText.parse(text, now: 1_792_567_590) == seconds)
    }

    @Test(
        "other text is not",
        arguments: [
            "", "120", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 199 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 0 Nov 1994 08:49:37 GMT",
        ])
    func refused(text: String) { #expect(HTTPDateText.parse(text, now: 0) == nil) }
}
