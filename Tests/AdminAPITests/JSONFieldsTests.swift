import Testing

@testable import AdminAPI

@Suite("Fields of a JSON object")
struct JSONFieldsTests {
    @Test(
        "whole numbers are read in every spelling that is exact",
        arguments: [
            ("0", 0), ("-0", 0), ("9223372036854775807", .max), ("-9223372036854775808", .min),
            ("1.0", 1), ("1e3", 1000), ("-2.5e1", -25),
            ("9007199254740992.0", 9_007_199_254_740_992),
        ] as [(String, Int64)])
    func wholeNumbers(text: String, number: Int64) {
        #expect(JSONFields.wholeNumber(text) == number)
    }

    @Test(
        "other numbers are none",
        arguments: [
            "", "+1", "1.5", "1e-1", "9223372036854775808", "1e19", "9007199254740994.0", "0x10",
            "inf", "nan", " 1", "1 ", "1e999",
        ])
    func otherNumbers(text: String) {
        #expect(JSONFields.wholeNumber(text) == nil)
    }
}
