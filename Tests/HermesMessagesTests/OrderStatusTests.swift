import PlainText
import Testing

@testable import HermesMessages

@Suite("Order status names and numbers")
struct OrderStatusTests {
    @Test(
        "short and full names name the same status",
        arguments: [
            ("UNSPECIFIED", OrderStatus.unspecified, 0), ("SUBMITTED", .submitted, 1),
            ("UNDER_REVIEW", .underReview, 2), ("SUPPLEMENT_REQUIRED", .supplementRequired, 3),
            ("APPROVED", .approved, 4), ("REJECTED", .rejected, 5), ("SIGNED", .signed, 6),
            ("FUNDED", .funded, 7), ("CANCELLED", .cancelled, 8),
        ] as [(String, OrderStatus, Int64)])
    func names(name: String, status: OrderStatus, number: Int64) throws {
        #expect(try OrderStatus(name: ForeignText(name)) == status)
        #expect(try OrderStatus(name: ForeignText("ORDER_STATUS_" + name)) == status)
        #expect(try OrderStatus(number: number) == status)
        #expect(status.shortName == name)
        #expect(Int64(status.rawValue) == number)
    }

    @Test(
        "an unknown name is refused, in whatever way it differs",
        arguments: ["", "approved", "APPROVED ", "ORDER_STATUS_", "ORDER_STATUS_PAID", "4"])
    func unknownNames(name: String) {
        #expect(throws: UnknownOrderStatus()) { try OrderStatus(name: ForeignText(name)) }
    }

    @Test("an unknown number is refused", arguments: [-1, 9, Int64.max, Int64.min, 1 << 32])
    func unknownNumbers(number: Int64) {
        #expect(throws: UnknownOrderStatus()) { try OrderStatus(number: number) }
    }

    @Test("the error lists every status with its number")
    func errorListsAll() {
        let text = UnknownOrderStatus().description
        for status in OrderStatus.allCases {
            #expect(text.contains("\(status.shortName) (\(status.rawValue))"))
        }
    }
}
