import Testing

/// A page that says "`load` in `Sources/…/Shard+Load.swift`" is wrong once the function has moved.
@Suite("Functions in documents")
struct DocumentedFunctionTests {
    private static var named: Regex<(Substring, Substring, Substring)> {
        #/`(?:\w+\.)?(\w+)(?:\([^`]*\))?`(?:\s+(?:in|of)\s+|\s+\()`(Sources\/[^`*]+\.swift)`/#
    }

    @Test("a function that docs/architecture.md names with its file is in that file")
    func functions() throws {
        let page = try Repository.file("docs/architecture.md")
        var found = 0
        for (index, line) in page.lines.enumerated() {
            for match in line.matches(of: Self.named) {
                found += 1
                #expect(
                    try Self.mentions(String(match.2), match.1),
                    "line \(index + 1): \(match.1) is not in \(match.2)")
            }
        }
        #expect(found > 30, "the scan of the page found too little")
    }

    @Test("a row of a walk names the files of its functions")
    func walks() throws {
        let page = try Repository.file("docs/architecture.md")
        var rows = 0
        for (index, line) in page.lines.enumerated() {
            let cells = line.split(separator: "|").map { $0 }
            guard cells.count == 4, cells[0].contains(#/^ \d+ $/#) else { continue }
            rows += 1
            let files = cells[3].matches(of: #/`(Sources\/[^`]+)`/#).map { String($0.1) }
            for function in cells[2].matches(of: #/`(?:\w+\.)?(\w+)(?:\([^`]*\))?`/#) {
                #expect(
                    try files.contains { try Self.mentions($0, function.1) },
                    "line \(index + 1): \(function.1) is in none of \(files)")
            }
        }
        #expect(rows > 10, "the scan of the walks found too little")
    }

    private static func mentions(_ path: String, _ name: Substring) throws -> Bool {
        guard Repository.exists(path) else { return false }
        let pattern = try Regex("\\b\(name)\\b")
        return try Repository.file(path).lines.contains { $0.contains(pattern) }
    }
}
