/// A JSON text (RFC 8259), read.
///
/// Numbers keep their text, because a `Double` would lose digits of 64-bit integers. Members keep
/// their order; a name occurs once, because the parser refuses repetitions.
enum JSONValue: Equatable, Sendable {
    case null
    case bool(Bool)
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([JSONMember])

    /// What the value is, for people.
    var kindName: String {
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
struct JSONMember: Equatable, Sendable {
    var name: String
    var value: JSONValue
}

/// Where and why a text is not JSON.
struct JSONSyntaxError: Error, Equatable, CustomStringConvertible {
    /// Counts from 1.
    var line: Int
    /// Counts bytes from 1.
    var column: Int
    var reason: String

    var description: String { "line \(line), column \(column): \(reason)" }
}
