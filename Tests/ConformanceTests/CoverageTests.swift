import Testing

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
        let read = try TestSources(folder: folder)
        sources = read.sources
        tests = read.tests
        document = try TestSources.text(of: "\(folder)/../../docs/conformance.md")
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
        TestSources.expectAllRun(tests, in: sources, frames: "WebSocketConformance.swift")
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
            case .offersAll, .notOffered:
                #expect(Bool(false), "an excuse of 5.0: \(untested.identifier)")
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
}
