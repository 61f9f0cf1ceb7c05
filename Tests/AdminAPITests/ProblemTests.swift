import BrokerAPI
import FoundationEssentials
import NIOHTTP1
import Testing

@testable import AdminAPI

@Suite("Problem documents")
struct ProblemTests {
    @Test("docs/http-api.md lists exactly the problems that exist, each with its status")
    func documented() throws {
        var documented: [String] = []
        for line in try Self.documentation() where line.hasPrefix("| ") {
            let cells = line.split(separator: "|").map {
                String($0).replacing(" ", with: "").replacing("`", with: "")
            }
            guard cells.count == 3, let status = Int(cells[0]), status >= 400 else { continue }
            documented.append("\(status) \(cells[1])")
        }
        let existing = Problem.Kind.allCases.map { "\($0.status.code) \($0.rawValue)" }
        #expect(documented.sorted() == existing.sorted())
    }

    @Test("no word of the parser reaches a caller")
    func parserWords() {
        let errors: [HTTPParserError] = [
            .invalidCharactersUsed, .trailingGarbage, .invalidEOFState, .headerOverflow,
            .closedConnection, .invalidVersion, .invalidStatus, .invalidMethod, .invalidURL,
            .lfExpected, .invalidHeaderToken, .invalidContentLength, .unexpectedContentLength,
            .invalidChunkSize, .invalidConstant, .invalidInternalState, .strictModeAssertion,
            .paused, .unknown,
        ]
        for error in errors {
            let problem = Problem(malformedRequest: error)
            #expect(!problem.detail.contains("\(error)"))
            #expect(problem.detail.hasSuffix(".") && problem.fix.hasSuffix("."), "\(error)")
        }
    }

    private static func documentation() throws -> [String] {
        let root = #filePath.split(separator: "/", omittingEmptySubsequences: false)
            .dropLast(3).joined(separator: "/")
        let data = try Data(contentsOf: URL(fileURLWithPath: root + "/docs/http-api.md"))
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
        let section = lines.drop { $0 != "## Errors" }.dropFirst()
        return Array(section.prefix { !$0.hasPrefix("## ") })
    }

    @Test("whoever is told to come later is told when", arguments: Problem.Kind.allCases)
    func retryAfter(kind: Problem.Kind) {
        let headers = Problem(kind, "d", fix: "f").documentHeaders
        #expect((headers[.retryAfter] != nil) == [503, 507].contains(kind.status.code))
    }
}
