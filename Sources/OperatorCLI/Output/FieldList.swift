import PlainText

/// Names and values in two columns, in groups separated by blank lines. Nothing is cut.
struct FieldList {
    private var groups: [[(name: String, value: String)]] = [[]]

    /// Adds a line; the value may hold untrusted text.
    mutating func add(_ name: String, _ value: String) {
        groups[groups.count - 1].append((name, VisibleText.escaped(value)))
    }

    /// Begins a new group: a blank line precedes the next line.
    mutating func startGroup() {
        if groups.last?.isEmpty == false { groups.append([]) }
    }

    func rendered() -> String {
        let filled = groups.filter { !$0.isEmpty }
        let width = filled.joined().map { DisplayWidth.of($0.name) }.max() ?? 0
        return filled.map { group in
            group.map { name, value in
                let padding = String(repeating: " ", count: width - DisplayWidth.of(name))
                return "\(name)\(padding)  \(value)\n"
            }.joined()
        }.joined(separator: "\n")
    }
}
