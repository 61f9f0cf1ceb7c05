import Testing

/// Every question of the admin plane has a feature that answers it: the shard finds the feature by a
/// cast, which the compiler does not check.
@Suite("Questions of the admin plane")
struct QuestionTests {
    private static func names(
        in folder: String, _ pattern: Regex<(Substring, Substring)>
    ) throws -> [String] {
        try Repository.files(in: folder, suffix: ".swift").flatMap { file in
            file.lines.compactMap { $0.firstMatch(of: pattern).map { String($0.output.1) } }
        }.sorted()
    }

    @Test("are answered by one feature each")
    func answered() throws {
        let asked = try Self.names(in: "Sources/BrokerAPI", #/struct (\w+): BrokerQuestion\b/#)
        let answered = try Self.names(
            in: "Sources/BrokerFeatures", #/^extension (\w+): ShardQuestion\b/#)
        #expect(asked.count > 20)
        #expect(asked == answered)
    }
}
