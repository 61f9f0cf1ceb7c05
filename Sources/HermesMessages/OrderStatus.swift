import PlainText

/// The state of an order; the raw value is the number on the wire (`hermes.v1.OrderStatus`).
package enum OrderStatus: Int32, CaseIterable, Hashable, Sendable {
    case unspecified = 0
    case submitted = 1
    case underReview = 2
    case supplementRequired = 3
    case approved = 4
    case rejected = 5
    case signed = 6
    case funded = 7
    case cancelled = 8

    /// The schema's name without its prefix `ORDER_STATUS_`.
    package var shortName: String {
        switch self {
        case .unspecified: "UNSPECIFIED"
        case .submitted: "SUBMITTED"
        case .underReview: "UNDER_REVIEW"
        case .supplementRequired: "SUPPLEMENT_REQUIRED"
        case .approved: "APPROVED"
        case .rejected: "REJECTED"
        case .signed: "SIGNED"
        case .funded: "FUNDED"
        case .cancelled: "CANCELLED"
        }
    }

    /// The name in the schema.
    package var fullName: String { "ORDER_STATUS_" + shortName }

    /// Reads a status from its short or its full name; names are case-sensitive, as in proto3 JSON.
    ///
    /// - Throws: ``UnknownOrderStatus`` with the names that exist.
    package init(name: ForeignText) throws(UnknownOrderStatus) {
        let status = Self.allCases.first { status in
            [status.shortName, status.fullName].contains { name == ForeignText($0) }
        }
        guard let status else { throw UnknownOrderStatus() }
        self = status
    }

    /// Reads a status from its number.
    ///
    /// - Throws: ``UnknownOrderStatus`` with the numbers that exist.
    package init(number: Int64) throws(UnknownOrderStatus) {
        guard let raw = Int32(exactly: number), let status = Self(rawValue: raw) else {
            throw UnknownOrderStatus()
        }
        self = status
    }
}

/// The schema has no status of this name or number.
package struct UnknownOrderStatus: Error, Hashable, CustomStringConvertible {
    package init() {}

    /// All statuses for an error text: short names with their numbers.
    package static let known = OrderStatus.allCases
        .map { "\($0.shortName) (\($0.rawValue))" }
        .joined(separator: ", ")

    package var description: String {
        "unknown order status; known are \(Self.known), each also with the prefix ORDER_STATUS_"
    }
}
