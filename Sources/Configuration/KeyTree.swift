/// All keys in the shape of a YAML document, built from `Setting.all`.
indirect enum KeyTree: Sendable {
    case value(Setting)
    case section([String: KeyTree])
    /// A list whose every item is a section.
    case list([String: KeyTree])

    static let root: [String: KeyTree] = {
        var root: [String: KeyTree] = [:]
        for setting in Setting.all {
            insert(
                setting, setting.pattern.split(separator: ".").map(String.init)[...], into: &root)
        }
        return root
    }()

    private static func insert(
        _ setting: Setting, _ names: ArraySlice<String>, into section: inout [String: KeyTree]
    ) {
        guard let first = names.first else { return }
        let rest = names.dropFirst()
        guard !rest.isEmpty else {
            section[first] = .value(setting)
            return
        }
        let isList = first.hasSuffix("[]")
        let name = isList ? String(first.dropLast(2)) : first
        var children: [String: KeyTree] =
            switch section[name] {
            case .section(let known), .list(let known): known
            case .value, nil: [:]
            }
        insert(setting, rest, into: &children)
        section[name] = isList ? .list(children) : .section(children)
    }
}

/// Suggestions for an unknown key.
enum KeySuggestion {
    /// Advice for an unknown key: the same name elsewhere, the most similar one, or all `siblings`.
    static func cure(for name: String, among siblings: some Collection<String>) -> String {
        if let setting = Setting.all.first(where: { leaf($0.pattern) == name }) {
            return "It belongs to \(setting.pattern)."
        }
        if let near = nearest(to: name, among: siblings) { return "Did you mean \(near)?" }
        let patterns = Setting.all.map(\.pattern)
        if let near = patterns.first(where: { nearest(to: name, among: [leaf($0)]) != nil }) {
            return "Did you mean \(near)?"
        }
        return "Delete it. Known here: \(siblings.sorted().joined(separator: ", "))."
    }

    /// The candidate with the smallest edit distance, unless it is too large for the name's length.
    static func nearest(to name: String, among candidates: some Collection<String>) -> String? {
        // The cost is the product of both lengths, and so long a name is no typing error.
        guard name.utf8.count <= 80 else { return nil }
        let best =
            candidates
            .map { (candidate: $0, edits: editDistance(name, $0)) }
            .min { ($0.edits, $0.candidate) < ($1.edits, $1.candidate) }
        guard let best, best.edits <= max(1, best.candidate.utf8.count / 3) else { return nil }
        return best.candidate
    }

    private static func leaf(_ pattern: String) -> String {
        pattern.split(separator: ".").last.map(String.init) ?? pattern
    }

    /// Levenshtein's distance over bytes: insertions, deletions and replacements.
    private static func editDistance(_ left: String, _ right: String) -> Int {
        let right = Array(right.utf8)
        var previous = Array(0...right.count)
        for (row, byte) in left.utf8.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                let replaced = previous[column] + (byte == other ? 0 : 1)
                current.append(min(replaced, previous[column + 1] + 1, current[column] + 1))
            }
            previous = current
        }
        return previous[right.count]
    }
}
