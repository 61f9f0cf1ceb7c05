import PlainText

/// A parsed JSON value (RFC 8259).
///
/// Numbers keep their text, because a `Double` would lose digits of 64-bit integers. Members keep
/// their order, and names are unique.
package enum JSONValue: Equatable, Sendable {
    case null
    case bool(Bool)
    case number(String)
    case string(ForeignText)
    case array([JSONValue])
    case object([JSONMember])

    /// The type of the value, for an error message.
    package var kindName: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// A name and its value.
package struct JSONMember: Equatable, Sendable {
    package var name: ForeignText
    package var value: JSONValue

    package init(name: ForeignText, value: JSONValue) {
        self.name = name
        self.value = value
    }
}

/// The place of a syntax error, and its reason.
package struct JSONSyntaxError: Error, Equatable, CustomStringConvertible {
    /// Counts from 1.
    package var line: Int
    /// In bytes, from 1.
    package var column: Int
    package var reason: String

    package var description: String { "line \(line), column \(column): \(reason)" }
}
