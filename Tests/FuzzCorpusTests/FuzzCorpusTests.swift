import FuzzChecks
import Testing

/// Runs the checks of fuzzing on every kept input.
///
/// `scripts/fuzz --replay` shows the steps of an input.
@Suite("Fuzz corpora")
struct FuzzCorpusTests {
    /// Few and small inputs, since they run in each `swift test`.
    private static let mostFiles = 300
    private static let mostBytes = 1_024

    @Test("no input breaks a claim", arguments: FuzzCheck.allCases)
    func replay(check: FuzzCheck) throws {
        let inputs = try CorpusFile.all(in: "corpora", of: check)
        #expect(inputs.count > 20, "the corpus of \(check) is missing")
        #expect(inputs.count < Self.mostFiles)
        for input in inputs {
            #expect(input.bytes.count <= Self.mostBytes, "\(input.path)")
            #expect(throws: Never.self, "\(input.path)") { try check.run(input.bytes) }
        }
    }

    @Test("no input breaks its claim again", arguments: FuzzCheck.allCases)
    func regressions(check: FuzzCheck) throws {
        for input in try CorpusFile.all(in: "regressions", of: check) {
            #expect(throws: Never.self, "\(input.path)") { try check.run(input.bytes) }
        }
    }

    @Test("an input is checked to its last byte", arguments: FuzzCheck.allCases)
    func prefixes(check: FuzzCheck) throws {
        for input in try CorpusFile.all(in: "corpora", of: check).prefix(3) {
            for count in 0..<min(input.bytes.count, 48) {
                let prefix = [UInt8](input.bytes.prefix(count))
                #expect(throws: Never.self, "\(count) bytes of \(input.path)") {
                    try check.run(prefix)
                }
            }
        }
    }
}
