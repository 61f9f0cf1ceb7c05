import Glibc
import Testing

/// A test of this target, read from its source.
private struct DeclaredTest {
    let title: String
    let function: String
    let file: String
    /// From the title to the function's name.
    let declaration: Substring

    /// The name in `docs/conformance.md`: `WillConformance.retained`.
    var name: String { "\(file.dropLast(".swift".count)).\(function)" }

    /// The statements at the beginning of the title: `MQTT-1.2.3-4, MQTT-1.2.3-5: words`.
    var statements: [String] {
        guard title.hasPrefix("MQTT-"), let colon = title.firstIndex(of: ":") else { return [] }
        return title[..<colon].split(separator: ",").map { $0.filter { $0 != " " } }
    }
}

/// A table of `docs/conformance.md` that names the tests of each point of a list.
struct PointTable: Sendable {
    let heading: String
    /// The prefix in titles of the list's own tests.
    let title: String
    let count: Int
}

/// Compares the tests with the list of statements and with `docs/conformance.md`.
@Suite("The list of statements")
struct CoverageTests {
    private let tests: [DeclaredTest]
    private let sources: [(file: String, text: String)]
    private let document: [Substring]

    init() throws {
        let folder = String(#filePath.dropLast("/CoverageTests.swift".count))
        var sources: [(String, String)] = []
        for file in try Self.files(in: folder) where file.hasSuffix(".swift") {
            guard file != "CoverageTests.swift" else { continue }
            sources.append((file, try Self.text(of: "\(folder)/\(file)")))
        }
        self.sources = sources
        tests = sources.flatMap { file, text in Self.tests(in: text, file) }
        document = try Self.text(of: "\(folder)/../../docs/conformance.md")
            .split(separator: "\n", omittingEmptySubsequences: false)
    }

    @Test("The list: every statement that binds a server has a test, or an accepted excuse")
    func everyStatementIsTested() {
        let tested = Set(tests.flatMap(\.statements))
        let excused = Set(UntestedStatement.all.map(\.identifier))
        for statement in Statement.all {
            #expect(
                tested.contains(statement.identifier) || excused.contains(statement.identifier),
                "\(statement.identifier) has no test: \(statement.gist)")
        }
        #expect(tested.isDisjoint(with: excused), "tested, and listed as untested")
    }

    @Test("The list: every title begins with statements that exist, or with its list's name")
    func everyTitleIsKnown() {
        #expect(tests.count > 100, "the scan of the sources found too little")
        let known = Set(Statement.all.map(\.identifier))
        for test in tests {
            if test.title.hasPrefix("MQTT-") {
                #expect(!test.statements.isEmpty, "no colon in \"\(test.title)\"")
                for identifier in test.statements {
                    #expect(known.contains(identifier), "\"\(test.title)\" in \(test.file)")
                }
            } else {
                let prefixes = ["Commonly missed ", "Where brokers break ", "Section "]
                #expect(
                    prefixes.contains { test.title.hasPrefix($0) && test.title.contains(":") },
                    "\"\(test.title)\" in \(test.file)")
            }
        }
    }

    @Test("The list: every test runs over every transport, and none is switched off")
    func everyTestRuns() {
        for test in tests {
            #expect(
                test.declaration.contains("arguments: Transport.all")
                    // Section 6 is about frames.
                    || test.file == "WebSocketConformance.swift"
                        && test.declaration.contains("arguments: Transport.framed"),
                "\"\(test.title)\" in \(test.file)")
        }
        for (file, text) in sources {
            for word in ["withKnownIssue", ".disabled(", ".enabled("] {
                #expect(!text.contains(word), "\(word) in \(file)")
            }
            // A test that the scan misses would not be compared.
            let declared =
                text.split(separator: "@Test", omittingEmptySubsequences: false).count - 1
            #expect(declared == tests.count { $0.file == file }, "tests in \(file)")
        }
    }

    @Test("The list: 141 statements, each once; excuses fit their statements")
    func listIsWhole() {
        #expect(Statement.all.count == 141)
        #expect(Set(Statement.all.map(\.identifier)).count == 141)
        #expect(Set(UntestedStatement.all.map(\.identifier)).count == UntestedStatement.all.count)
        for untested in UntestedStatement.all {
            let statement = Statement.all.first { $0.identifier == untested.identifier }
            #expect(statement != nil, "\(untested.identifier) is no statement")
            switch untested.excuse {
            case .bindsClients:
                #expect(statement?.bindsServer == false, "\(untested.identifier)")
            case .makesNoConnections:
                #expect(untested.identifier == "MQTT-7.0.0-1")
            }
        }
    }

    @Test("The list: docs/conformance.md is current")
    func documentIsCurrent() throws {
        let tested = Set(tests.flatMap(\.statements))
        let counts: [(String, Int)] = [
            ("Statements", Statement.all.count),
            ("Bind the server (alone or too)", Statement.all.count { $0.bindsServer }),
            ("Tested", tested.count),
            ("Not tested", UntestedStatement.all.count),
            ("Tests", tests.count),
        ]
        for (name, count) in counts {
            #expect(document.contains("| \(name) | \(count) |"), "| \(name) | \(count) |")
        }
        let rows = document.filter { $0.hasPrefix("| MQTT-") }
        #expect(
            rows.map(String.init)
                == UntestedStatement.all.map {
                    "| \($0.identifier) | \($0.excuse.rawValue) | \($0.reason) |"
                })
    }

    @Test(
        "The list: docs/conformance.md names a test that exists for every point",
        arguments: [
            PointTable(heading: "## Commonly missed", title: "Commonly missed ", count: 16),
            PointTable(
                heading: "## Where brokers break the protocol", title: "Where brokers break ",
                count: 12),
            PointTable(heading: "## Rules without a number", title: "Section ", count: 7),
        ])
    func everyPointHasATest(table: PointTable) throws {
        let names = Set(tests.map(\.name))
        let start = try #require(document.firstIndex { $0 == table.heading })
        let section = document[(start + 1)...].prefix { !$0.hasPrefix("## ") }
        let rows = section.filter { $0.first == "|" && $0.dropFirst(2).first?.isNumber == true }
        #expect(rows.count == table.count)
        for row in rows {
            let named = try #require(row.split(separator: "|").last { $0.contains("`") })
                .split(separator: "`").filter { $0.contains(".") }
            #expect(!named.isEmpty, "\(row)")
            for name in named {
                #expect(names.contains(String(name)), "no test \(name): \(row)")
            }
        }
        // The reverse: each point's own test is named in its table.
        for test in tests where test.title.hasPrefix(table.title) {
            #expect(section.contains { $0.contains("`\(test.name)`") }, "\(test.name)")
        }
    }

    // MARK: Reading

    private static func tests(in text: String, _ file: String) -> [DeclaredTest] {
        let pattern = #/@Test\(\s*"(?<title>(?:[^"\\]|\\.)*)"(?<rest>.*?)func (?<name>\w+)\(/#
            .dotMatchesNewlines()
        return text.matches(of: pattern).map { match in
            DeclaredTest(
                title: String(match.output.title), function: String(match.output.name), file: file,
                declaration: match.output.rest)
        }
    }

    private static func files(in folder: String) throws -> [String] {
        guard let directory = opendir(folder) else {
            throw ConformanceFailure("\(folder): errno \(errno)")
        }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) {
                    names.append(String(cString: $0))
                }
            }
        }
        return names.sorted()
    }

    private static func text(of path: String) throws -> String {
        guard let file = fopen(path, "r") else {
            throw ConformanceFailure("\(path): errno \(errno)")
        }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1_024)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(contentsOf: buffer[..<count])
        }
    }
}
