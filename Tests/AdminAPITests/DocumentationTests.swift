import FoundationEssentials
import Testing

@testable import AdminAPI

/// docs/http-api.md, whose tables are read beside the code.
@Suite("docs/http-api.md")
struct DocumentationTests {
    private static func lines() throws -> [String] {
        let root = #filePath.split(separator: "/", omittingEmptySubsequences: false)
            .dropLast(3).joined(separator: "/")
        let data = try Data(contentsOf: URL(fileURLWithPath: root + "/docs/http-api.md"))
        return String(decoding: data, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// The first cells of the tables in the section of this heading, without those of its sections.
    private static func cells(in heading: String) throws -> [String] {
        let lines = try lines()
        let start = try #require(lines.firstIndex(of: heading), "there is no \(heading)")
        return lines[(start + 1)...].prefix { !$0.hasPrefix("#") }
            .filter { $0.hasPrefix("| ") }
            .map { String($0.split(separator: "|").first ?? "") }
    }

    /// The words between backquotes.
    private static func words(_ cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }

    @Test("its table of routes has each route once, and no other")
    func routes() throws {
        let table = try TestServer.routeTable()
        // The page's files are no part of the API.
        let existing = table.routes.filter { !$0.path.hasPrefix("/ui") }
            .map { "\($0.method.rawValue) \($0.path)" }
        let words: [String] = try Self.cells(in: "## Routes").flatMap { Self.words($0) }
        let documented = words.filter { !$0.contains("/ui") }
        #expect(documented.sorted() == existing.sorted())
    }

    @Test("its tables of fields have each field of a request")
    func fields() throws {
        for (heading, known) in [
            ("### POST /v1/messages", Route.messageFields.names),
            ("### POST /v1/orders/{order_id}/status", OrderStatusPublisher.fields.names),
            ("### POST /v1/pushes", PushOrder.fields.names),
        ] {
            let documented = Set(
                try Self.cells(in: heading).flatMap { Self.words($0) }.map { Self.normalised($0) })
            for name in known {
                #expect(documented.contains(Self.normalised(name)), "\(heading) has no \(name)")
            }
        }
    }

    /// `to.tags` is a part of `to`.
    private static func normalised(_ name: String) -> String { String(name.prefix { $0 != "." }) }
}
