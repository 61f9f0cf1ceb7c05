import BrokerAPI
import PlainText
import RequestText

/// The query parameters of a request, decoded and checked against those of its route.
struct QueryItems: Equatable {
    private var values: [ForeignText: ForeignText] = [:]

    /// - Parameters:
    ///   - text: The text after the `?`; `nil` or empty for none.
    ///   - known: The parameters of the route.
    /// - Throws: ``Problem`` for a plus, which means a space to some programs and itself to others,
    ///   for invalid percent-encoding, and for unknown or repeated names.
    init(_ text: Substring?, known: [String]) throws(Problem) {
        guard let text else { return }
        for encoded in QueryItem.split(text) {
            guard !encoded.utf8.contains(UInt8(ascii: "+")) else {
                throw Problem(
                    .invalidQuery,
                    "The query item \"\(String(encoded).visible())\" holds a plus, which stands for "
                        + "a space to some programs and for itself to others.",
                    field: String(Substring(encoded.utf8.prefix { $0 != UInt8(ascii: "=") }))
                        .visible(),
                    fix: "Write a space as %20 and a plus as %2B; in a topic a plus is a wildcard, "
                        + "and nothing can be published to it.")
            }
            guard let item = QueryItem(encoded) else {
                throw Problem(
                    .invalidQuery,
                    "The query item \"\(String(encoded).visible())\" is not percent-encoded UTF-8.",
                    fix: "Write every byte outside letters, digits, `-`, `.`, `_` and `~` as %XX.")
            }
            guard known.contains(where: { item.name == ForeignText($0) }) else {
                let list = known.isEmpty ? "none" : known.joined(separator: ", ")
                throw Problem(
                    .invalidQuery,
                    "The query parameter \"\(item.name.visible())\" is not known here.",
                    field: item.name.visible(),
                    fix: "Remove or rename it. Known parameters: \(list).")
            }
            guard values.updateValue(item.value, forKey: item.name) == nil else {
                throw Problem(
                    .invalidQuery, "The query parameter \(item.name) is given twice.",
                    field: item.name.string, fix: "Give it once.")
            }
        }
    }

    subscript(name: ForeignText) -> String? { values[name]?.string }

    func required(_ name: ForeignText, example: String) throws(Problem) -> String {
        guard let value = values[name] else {
            throw Problem(
                .invalidQuery, "The query parameter \(name) is missing.", field: name.string,
                fix: "Add ?\(name)=\(example) to the URL.")
        }
        return value.string
    }

    func bool(_ name: ForeignText) throws(Problem) -> Bool? {
        switch values[name] {
        case nil: return nil
        case "true": return true
        case "false": return false
        case .some(let value):
            throw Problem(
                .invalidQuery,
                "The query parameter \(name) is \"\(value.visible())\"; it must be true or false.",
                field: name.string, fix: "Write \(name)=true or \(name)=false.")
        }
    }

    func integer(_ name: ForeignText, in range: ClosedRange<Int64>) throws(Problem) -> Int64? {
        guard let value = values[name] else { return nil }
        guard value.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int64(value.string),
            range.contains(number)
        else {
            throw Problem(
                .invalidQuery,
                "The query parameter \(name) is \"\(value.visible())\"; it must be a whole number "
                    + "from \(range.lowerBound) to \(range.upperBound).",
                field: name.string,
                fix: "Write it in digits alone, as in \(name)=\(range.lowerBound).")
        }
        return number
    }

    /// A parameter that is one of some words; `nil` when it is not given.
    func choice(_ name: ForeignText, of words: [String]) throws(Problem) -> String? {
        guard let value = values[name] else { return nil }
        guard let word = words.first(where: { value == ForeignText($0) }) else {
            throw Problem(
                .invalidQuery, "The query parameter \(name) is \"\(value.visible())\".",
                field: name.string,
                fix: "It may be \(words.joined(separator: ", ")).")
        }
        return word
    }

    /// The parameter `cursor` of a sorted list.
    func listCursor() throws(Problem) -> String? {
        guard let text = values["cursor"]?.string else { return nil }
        guard ListCursor(text: text) != nil else { throw Self.unknownCursor(text) }
        return text
    }

    static func unknownCursor(_ text: String) -> Problem {
        Problem(
            .invalidQuery,
            "The cursor is \"\(text.visible())\", which no page has named, or none since the "
                + "broker started.",
            field: "cursor",
            fix: "Pass the `next` of the page before, as it is; if the broker has started anew, or "
                + "the list is of a file that was changed, begin without a cursor.")
    }

    /// The parameter `limit` of a list.
    func pageSize() throws(Problem) -> Int {
        try integer("limit", in: 1...Int64(PageSize.largest)).map { Int($0) } ?? PageSize.usual
    }
}
