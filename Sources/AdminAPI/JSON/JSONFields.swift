import PlainText
import RequestText

/// The members of a JSON object for a route, read by name, with errors that give advice.
///
/// Unknown members are errors, so that a misspelt option is not ignored.
struct JSONFields {
    /// A member's name and its other spellings.
    struct Name: Sendable {
        var canonical: String
        var aliases: [String] = []

        var all: [String] { [canonical] + aliases }
    }

    /// All members of a route, made once.
    struct Known: Sendable {
        fileprivate let spellings: [(spelling: ForeignText, canonical: String)]
        /// Without other spellings.
        let names: [String]
        fileprivate let list: String

        init(_ names: [Name]) {
            spellings = names.flatMap { name in name.all.map { (ForeignText($0), name.canonical) } }
            self.names = names.map(\.canonical)
            list = self.names.joined(separator: ", ")
        }

        fileprivate func canonical(_ spelling: ForeignText) -> String? {
            spellings.first { $0.spelling == spelling }?.canonical
        }
    }

    /// By canonical name. So few are found faster in a list than by hashes.
    private var values: [(name: String, value: JSONValue)] = []
    /// Precedes the names of members in errors: `message.` in the object of that name.
    let path: String

    /// - Parameters:
    ///   - value: The body, which must be an object.
    ///   - known: All members that may occur.
    ///   - subject: The text that holds the value, for the error.
    ///   - path: The member of the body that holds the value, and a dot; empty for the body.
    /// - Throws: ``Problem`` for another type, an unknown member, or a member under two of its
    ///   names.
    init(
        _ value: JSONValue, known: Known, subject: String = "body", path: String = ""
    ) throws(Problem) {
        self.path = path
        guard case .object(let members) = value else {
            throw Problem(
                .invalidField, "The \(subject) is \(value.kindName); it must be a JSON object.",
                field: path.isEmpty ? nil : String(path.dropLast()),
                fix: "Send an object with the fields \(known.list).")
        }
        values.reserveCapacity(members.count)
        for member in members {
            guard let canonical = known.canonical(member.name) else {
                throw Problem(
                    .invalidField,
                    "The field \"\(path)\(member.name.visible())\" is not known here.",
                    field: path + member.name.visible(),
                    fix: "Remove or rename it. Known fields: \(known.list).")
            }
            guard !contains(canonical) else {
                throw wrong(
                    canonical, "is given twice, in two spellings", fix: "Give it once.")
            }
            values.append((canonical, member.value))
        }
    }

    /// True when the member is present, with any value.
    func contains(_ name: String) -> Bool { values.contains { $0.name == name } }

    /// The value; `nil` when it is absent or null.
    func value(_ name: String) -> JSONValue? {
        switch values.first(where: { $0.name == name })?.value {
        case nil, .null: nil
        case .some(let value): value
        }
    }

    func string(_ name: String) throws(Problem) -> String? {
        guard let value = value(name) else { return nil }
        guard case .string(let text) = value else {
            throw wrong(name, "is \(value.kindName); it must be a string", fix: "Put it in quotes.")
        }
        return text.string
    }

    func requiredString(_ name: String) throws(Problem) -> String {
        guard let text = try string(name) else {
            throw wrong(name, "is missing", fix: "Add \"\(name)\" with a string.")
        }
        return text
    }

    func bool(_ name: String) throws(Problem) -> Bool? {
        guard let value = value(name) else { return nil }
        guard case .bool(let flag) = value else {
            throw wrong(
                name, "is \(value.kindName); it must be true or false",
                fix: "Write true or false, without quotes.")
        }
        return flag
    }

    /// An integer in `range`, as a number; `1.0` and `1e3` are accepted.
    func integer(_ name: String, in range: ClosedRange<Int64>) throws(Problem) -> Int64? {
        guard let value = value(name) else { return nil }
        guard case .number(let text) = value, let number = Self.wholeNumber(text),
            range.contains(number)
        else {
            let found = if case .number(let text) = value { text.visible() } else { value.kindName }
            throw wrong(
                name,
                "is \(found); it must be a whole number from \(range.lowerBound) to "
                    + "\(range.upperBound)",
                fix: "Write such a number, without quotes.")
        }
        return number
    }

    /// A 64-bit integer in proto3 JSON: a number, or a string with one.
    func protoInt64(_ name: String) throws(Problem) -> Int64? {
        guard let value = value(name) else { return nil }
        switch value {
        case .number(let text): return try protoInt64(name, text)
        case .string(let text): return try protoInt64(name, text.string)
        case .null, .bool, .array, .object:
            throw wrong(
                name, "is \(value.kindName); it must be a 64-bit integer",
                fix: Self.howToWriteInt64)
        }
    }

    private func protoInt64(_ name: String, _ text: String) throws(Problem) -> Int64 {
        guard let number = Self.wholeNumber(text) else {
            throw wrong(
                name, "is \"\(text.visible())\"; it must be a 64-bit integer",
                fix: Self.howToWriteInt64)
        }
        return number
    }

    /// An array of strings.
    func strings(_ name: String) throws(Problem) -> [String]? {
        guard let value = value(name) else { return nil }
        guard case .array(let elements) = value else {
            throw wrong(
                name, "is \(value.kindName); it must be an array of strings",
                fix: "Write it as [\"text\"].")
        }
        var texts: [String] = []
        for element in elements {
            guard case .string(let text) = element else {
                throw wrong(
                    name, "holds \(element.kindName); it must be an array of strings",
                    fix: "Put each element in quotes.")
            }
            texts.append(text.string)
        }
        return texts
    }

    /// The members of an object.
    func object(_ name: String, known: Known) throws(Problem) -> JSONFields? {
        guard let value = value(name) else { return nil }
        return try JSONFields(
            value, known: known, subject: "field \(path)\(name)", path: "\(path)\(name).")
    }

    /// An object with string values: `map<string, string>` in proto3 JSON.
    func stringMap(_ name: String) throws(Problem) -> [ForeignText: String]? {
        guard let value = value(name) else { return nil }
        guard case .object(let members) = value else {
            throw wrong(
                name, "is \(value.kindName); it must be an object of strings",
                fix: "Write it as {\"name\": \"text\"}.")
        }
        var map: [ForeignText: String] = [:]
        for member in members {
            guard case .string(let text) = member.value else {
                throw wrong(
                    "\(name).\(member.name.visible())",
                    "is \(member.value.kindName); it must be a string", fix: "Put it in quotes.")
            }
            map[member.name] = text.string
        }
        return map
    }

    private static let howToWriteInt64 =
        "Write a whole number from \(Int64.min) to \(Int64.max), with or without quotes."

    /// The problem of an invalid value.
    func wrong(_ name: String, _ what: String, fix: String) -> Problem {
        Problem(
            .invalidField, "The field \(path)\(name) \(what).", field: path + name, fix: fix)
    }

    /// Parses `12`, and also `12.0` and `1.2e1` as long as a `Double` holds them exactly.
    static func wholeNumber(_ text: String) -> Int64? {
        guard let first = text.utf8.first, first != UInt8(ascii: "+") else { return nil }
        if let number = Int64(text) { return number }
        guard text.utf8.allSatisfy({ "0123456789.eE+-".utf8.contains($0) }),
            let number = Double(text), number.magnitude <= 0x1p53
        else { return nil }
        return Int64(exactly: number)
    }
}
