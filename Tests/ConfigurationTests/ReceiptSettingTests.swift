import Testing

@testable import OperatorConfiguration

@Suite("The receipts section")
struct ReceiptSettingTests {
    @Test("takes filters as a text or as a list")
    func filters() throws {
        let list = try load("receipts:\n  topics: [orders/#, +/news]")
        let text = try load("receipts:\n  topics: orders/#, +/news")
        #expect(list.receipts.topics == ["orders/#", "+/news"])
        #expect(text == list)
    }

    @Test("refuses what is no filter", arguments: ["a+", "#/a", "a,,b", "a b"])
    func refused(text: String) {
        let found = problems("receipts:\n  topics: \"\(text)\"")
        #expect(found.count == 1)
        #expect(found.first?.contains("is not a topic filter") == true, "\(found)")
    }
}
