import Testing

/// A comment can be understood alone: it begins with the thing or the actor that it is about, and
/// leans on no noun of the line below.
@Suite("Comments")
struct CommentTests {
    private static let folders = [
        "Client/Sources/HermesKit", "Client/Sources/HermesClientCore",
        "Client/Sources/HermesClientMessages", "Client/Sources/HermesClientNIO", "Sources",
        "TestSupport", "Tests",
    ]

    /// True for a line of comment that begins with a word which stands for a noun elsewhere.
    private static func leans(_ line: Substring) -> Bool {
        line.has("//") && line.contains(#/^\s*\/\/\/? (?:Of|That|Those|Who|Whom|Whose)\b/#)
    }

    @Test("begin with what they are about", arguments: folders)
    func firstWords(folder: String) throws {
        let files = try Repository.files(in: folder, suffix: ".swift")
        #expect(!files.isEmpty)
        for file in files {
            for (index, line) in file.lines.enumerated() where Self.leans(line) {
                Issue.record("\(file.path):\(index + 1): \(line)")
            }
        }
    }

    @Test(
        "the scan finds such lines, and no others",
        arguments: [
            ("    /// Of the newest message.", true), ("// Those that wait.", true),
            ("/// The newest message, of those that wait.", false),
            ("    let text = \"// Of\"", false), ("/// Offline clients.", false),
        ])
    func scan(line: String, isFound: Bool) { #expect(Self.leans(line[...]) == isFound) }
}
