import Testing

@Suite("Paths in documents")
struct DocumentPathTests {
    /// README.md, and every page under docs.
    private static let documents: [SourceFile] = {
        let pages = (try? Repository.files(in: "docs", suffix: ".md")) ?? []
        return pages + ((try? [Repository.file("README.md")]) ?? [])
    }()

    /// The first folders of paths in backticks.
    private static let folders: Set = [
        "Benchmarks", "Client", "Config", "Fuzz", "Protos", "Sources", "TestSupport", "Tests",
        "docker", "docs", "packaging", "scripts",
    ]

    @Test("a link leads to a file that exists")
    func links() {
        var links = 0
        for document in Self.documents {
            let folder = document.path.split(separator: "/").dropLast()
            for (line, text) in Self.prose(of: document) {
                for match in text.matches(of: #/\]\(([^)#\s]+)[^)]*\)/#)
                where !match.1.contains(":") {
                    links += 1
                    let path = Self.resolved(folder + match.1.split(separator: "/"))
                    #expect(
                        path.map(Repository.exists) == true,
                        "\(document.path):\(line) links to \(match.1), which does not exist")
                }
            }
        }
        #expect(links > 50, "the scan of the documents found too little")
    }

    @Test("a link to a heading leads to one that exists")
    func anchors() {
        var links = 0
        let headings = Dictionary(
            uniqueKeysWithValues: Self.documents.map { ($0.path, Self.anchors(of: $0)) })
        for document in Self.documents {
            let folder = document.path.split(separator: "/").dropLast()
            for (line, text) in Self.prose(of: document) {
                for match in text.matches(of: #/\]\(([^)#\s:]*)#([^)\s]+)\)/#) {
                    let path =
                        match.1.isEmpty
                        ? document.path : Self.resolved(folder + match.1.split(separator: "/"))
                    guard let path, let known = headings[path] else { continue }
                    links += 1
                    #expect(
                        known.contains(String(match.2)),
                        "\(document.path):\(line) links to #\(match.2) of \(path), which is no heading"
                    )
                }
            }
        }
        #expect(links > 50, "the scan of the documents found too little")
    }

    /// The names by which a page's headings are linked: in small letters, without punctuation, with
    /// dashes for blanks.
    private static func anchors(of document: SourceFile) -> Set<String> {
        var found: Set<String> = []
        for (_, text) in prose(of: document) where text.hasPrefix("#") {
            let heading = text.drop { $0 == "#" }.trimmingPrefix(" ")
                .replacing(#/\[([^\]]*)\]\([^)]*\)/#) { $0.1 }
            let kept = heading.lowercased().filter {
                $0.isLetter || $0.isNumber || "-_ ".contains($0)
            }
            let name = kept.replacing(" ", with: "-")
            var (unique, number) = (name, 0)
            while found.contains(unique) {
                number += 1
                unique = "\(name)-\(number)"
            }
            found.insert(unique)
        }
        return found
    }

    @Test("a path in backticks exists")
    func paths() {
        var paths = 0
        for document in Self.documents {
            for (line, text) in Self.prose(of: document) {
                for match in text.matches(of: #/`([^`\s]+)[^`]*`/#) {
                    guard let path = Self.path(match.1) else { continue }
                    paths += 1
                    #expect(
                        Repository.exists(path),
                        "\(document.path):\(line) names \(match.1), which does not exist")
                }
            }
        }
        #expect(paths > 20, "the scan of the documents found too little")
    }

    @Test(
        "words in backticks that are paths, and the part of each that must exist",
        arguments: [
            ("Sources/Store", "Sources/Store"), ("Fuzz/regressions/<target>/", "Fuzz/regressions"),
            ("Fuzz/.build/found/", "Fuzz"), ("Tests/ProcessTests/test_*.py", "Tests/ProcessTests"),
            ("Shard.swift", "Shard.swift"), ("/v1/clients", nil), ("text/plain", nil),
            ("docs", nil), ("scripts", nil),
        ])
    func recognised(word: String, path: String?) {
        #expect(Self.path(word[...]) == path)
    }

    /// The lines of a document with their numbers, without code blocks.
    private static func prose(of document: SourceFile) -> [(line: Int, text: Substring)] {
        var isCode = false
        return document.lines.enumerated().compactMap { index, line in
            if line.hasPrefix("```") {
                isCode.toggle()
                return nil
            }
            return isCode ? nil : (index + 1, line)
        }
    }

    /// The part of a path that must exist: up to a placeholder or build output. `nil` for a word
    /// that is no path of this repository.
    private static func path(_ word: Substring) -> String? {
        let parts = word.split(separator: "/", omittingEmptySubsequences: false)
        guard word.hasSuffix(".swift") || parts.count > 1 && folders.contains(String(parts[0]))
        else { return nil }
        let fixed = parts.prefix { part in
            !part.isEmpty && !part.hasPrefix(".build") && !part.contains { "<*".contains($0) }
        }
        return fixed.joined(separator: "/")
    }

    /// Follows `..`; `nil` above the root.
    private static func resolved(_ parts: ArraySlice<Substring>) -> String? {
        var path: [Substring] = []
        for part in parts where part != "." {
            guard part == ".." else {
                path.append(part)
                continue
            }
            if path.popLast() == nil { return nil }
        }
        return path.joined(separator: "/")
    }
}
