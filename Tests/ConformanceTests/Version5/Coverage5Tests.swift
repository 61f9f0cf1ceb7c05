import Testing

/// Compares the tests of MQTT 5.0 with its list of statements, with the list of traps, and with
/// `docs/conformance.md`.
@Suite("The list of statements of MQTT 5.0")
struct Coverage5Tests {
    private static let traps = 1...67

    private let tests: [DeclaredTest]
    private let sources: [(file: String, text: String)]
    /// The part of the page about 5.0.
    private let document: [Substring]
    private let processTests: String

    init() throws {
        let folder = String(#filePath.dropLast("/Coverage5Tests.swift".count))
        let read = try TestSources(folder: folder)
        sources = read.sources
        tests = read.tests
        let page = try TestSources.text(of: "\(folder)/../../../docs/conformance.md")
            .split(separator: "\n", omittingEmptySubsequences: false)
        document = Array(page.drop { $0 != "# Conformance to MQTT 5.0" })
        processTests = try TestSources.text(of: "\(folder)/../../ProcessTests/test_version_5.py")
    }

    @Test("The list of 5.0: every statement that binds a server has a test, or an accepted excuse")
    func everyStatementIsTested() {
        let tested = Set(tests.flatMap(\.statements))
        let excused = Set(UntestedStatement.version5.map(\.identifier))
        for statement in Statement.version5 {
            #expect(
                tested.contains(statement.identifier) || excused.contains(statement.identifier),
                "\(statement.identifier) has no test: \(statement.gist)")
        }
        #expect(tested.isDisjoint(with: excused), "tested, and listed as untested")
    }

    @Test("The list of 5.0: every title begins with statements that exist, a section or a trap")
    func everyTitleIsKnown() {
        #expect(tests.count > 50, "the scan of the sources found too little")
        let known = Set(Statement.version5.map(\.identifier))
        for test in tests {
            let prefixes = ["MQTT5-", "Section ", "Trap "]
            #expect(
                prefixes.contains { test.title.hasPrefix($0) } && test.title.contains(":"),
                "\"\(test.title)\" in \(test.file)")
            #expect(test.title.hasPrefix("MQTT5-") == !test.statements.isEmpty)
            for identifier in test.statements {
                #expect(known.contains(identifier), "\"\(test.title)\" in \(test.file)")
            }
            for trap in test.traps { #expect(Self.traps.contains(trap), "\"\(test.title)\"") }
        }
    }

    @Test("The list of 5.0: every test runs over every transport, and none is switched off")
    func everyTestRuns() {
        TestSources.expectAllRun(tests, in: sources, frames: "WebSocket5Conformance.swift")
    }

    @Test("The list of 5.0: 251 statements, each once; excuses fit their statements")
    func listIsWhole() {
        #expect(Statement.version5.count == 251)
        #expect(Set(Statement.version5.map(\.identifier)).count == 251)
        let excused = UntestedStatement.version5
        #expect(Set(excused.map(\.identifier)).count == excused.count)
        for untested in excused {
            let statement = Statement.version5.first { $0.identifier == untested.identifier }
            #expect(statement != nil, "\(untested.identifier) is no statement")
            switch untested.excuse {
            case .bindsClients:
                #expect(statement?.bindsServer == false, "\(untested.identifier)")
            case .offersAll:
                #expect(untested.identifier.hasPrefix("MQTT5-3.2.2-"))
            case .notOffered:
                #expect(
                    ["MQTT5-4.12.", "MQTT5-3.15."].contains { untested.identifier.hasPrefix($0) })
            case .makesNoConnections:
                #expect(Bool(false), "an excuse of 3.1.1: \(untested.identifier)")
            }
        }
    }

    @Test("The list of 5.0: docs/conformance.md is current")
    func documentIsCurrent() {
        let counts: [(String, Int)] = [
            ("Statements", Statement.version5.count),
            ("Bind the server (alone or too)", Statement.version5.count { $0.bindsServer }),
            ("Tested", Set(tests.flatMap(\.statements)).count),
            ("Not tested", UntestedStatement.version5.count),
            ("Tests", tests.count),
        ]
        for (name, count) in counts {
            #expect(document.contains("| \(name) | \(count) |"), "| \(name) | \(count) |")
        }
        let rows = document.filter { $0.hasPrefix("| MQTT5-") }
        #expect(
            rows.map(String.init)
                == UntestedStatement.version5.map {
                    "| \($0.identifier) | \($0.excuse.rawValue) | \($0.reason) |"
                })
    }

    @Test("The list of 5.0: docs/conformance.md names the tests of every trap, and each names it")
    func everyTrapHasATest() throws {
        let start = try #require(document.firstIndex { $0 == "## Traps of 5.0" })
        let section = document[(start + 1)...].prefix { !$0.hasPrefix("## ") }
        let rows = section.filter { $0.first == "|" && $0.dropFirst(2).first?.isNumber == true }
        #expect(rows.count == Self.traps.count)
        for (trap, row) in zip(Self.traps, rows) {
            #expect(row.hasPrefix("| \(trap) |"), "\(row)")
            let cell = row.split(separator: "|").last { $0.contains("`") } ?? ""
            let named = Set(
                cell.split(separator: "`").map(String.init)
                    .filter { $0.contains { $0.isLetter } })
            let ofSwift = Set(tests.filter { $0.traps.contains(trap) }.map(\.name))
            let others = named.subtracting(ofSwift)
            #expect(ofSwift.isSubset(of: named), "\(ofSwift) in \(row)")
            #expect(!named.isEmpty, "\(row)")
            for name in others {
                let isProcessTest =
                    processTests.contains("def \(name)(")
                    && processTests.lowercased().contains("trap \(trap)")
                #expect(
                    isProcessTest || name == "not offered", "no test \(name) for trap \(trap)")
            }
        }
    }
}
