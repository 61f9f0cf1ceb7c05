import Testing

@testable import AdminAPI

@Suite("Delivery times")
struct DeliveryTimeTests {
    @Test(
        "a date and time with an offset is read",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01T01:00:00.25+01:00", 250),
            ("2026-11-23T09:00:00+08:00", 1_795_395_600_000),
            ("2026-11-22T20:30:00-04:30", 1_795_395_600_000),
            ("2026-11-23t01:00:00z", 1_795_395_600_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
            ("2017-01-01t07:59:60.5+08:00", 1_483_228_800_000),
        ] as [(String, Int64)])
    func valid(text: String, expected: Int64) { #expect(DeliveryTime.parse(text) == expected) }

    @Test(
        "other text is not",
        arguments: [
            "", "2026-11-23", "2026-11-23T09:00:00", "2026-11-23 09:00:00Z", "2026-02-30T09:00:00Z",
            "2026-11-23T09:00:00+0800", "2026-11-23T09:00:00+24:00", "2026-11-23T09:00:00.Z",
            "2026-11-23T09:00:00é+1:00", "1795395600", "2026-11-23T09:00:61Z",
            "2026-11-23T09:60:60Z", "2026-11-23x09:00:00Z", "2026-02-30T23:59:60Z",
        ])
    func invalid(text: String) { #expect(DeliveryTime.parse(text) == nil) }
}
