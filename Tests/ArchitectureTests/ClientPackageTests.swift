import Testing

@Suite("The client's package")
struct ClientPackageTests {
    /// Names that iOS 15 and macOS 12 do not have, or only in part. Nothing Apple-only is compiled
    /// where these tests run, so no compiler tells.
    private static var unavailable: Regex<Substring> {
        #/
        \b(?:Mutex|Atomic|Synchronization|Duration|ContinuousClock|SuspendingClock|InlineArray
            |UTF8Span|U?Int128|Regex|RegexBuilder|FoundationEssentials|DiscardingTaskGroup
            |withDiscardingTaskGroup|withThrowingDiscardingTaskGroup|TaskExecutor)\b
        |\b(?:some|any)\s+Clock\b
        |\.(?:span|mutableSpan|utf8Span|firstMatch|wholeMatch|matches)\b
        |\bTask\.sleep\(for
        |:\s*any\s+\w+<
        /#
    }

    /// Where Foundation's own module is not Apple's: the file that offers `Data` and `Date`.
    private static func isAllowed(_ line: Substring, in file: SourceFile) -> Bool {
        file.path == "Client/Sources/HermesKit/HermesClient+Foundation.swift"
            && line.contains(#/^ *import FoundationEssentials$/#)
    }

    private static func sources() throws -> [SourceFile] {
        try ["Client/Sources", "Sources/MQTTCodec"].flatMap {
            try Repository.files(in: $0, suffix: ".swift")
        }
        .filter { !$0.path.contains("/Generated/") }
    }

    @Test("neither the client nor the codec uses what iOS 15 and macOS 12 lack")
    func availability() throws {
        let files = try Self.sources()
        #expect(files.count > 25, "the scan found too little")
        for file in files {
            for (index, line) in file.lines.enumerated() {
                let code = line.code
                #expect(
                    code.firstMatch(of: Self.unavailable) == nil || Self.isAllowed(code, in: file),
                    "\(file.path):\(index + 1): \(line)")
            }
        }
    }

    @Test(
        "the scan finds such names",
        arguments: [
            "let lock = Mutex(0)", "import Synchronization", "for byte in bytes.span {",
            "func wait(for time: Duration)", "let clock = ContinuousClock()",
            "var words: InlineArray<4, UInt64>", "func run(on clock: some Clock) {",
            "try await Task.sleep(for: .seconds(1))", "var total: UInt128",
            "let source: any Source<UInt8>",
        ])
    func found(line: String) {
        #expect(line.firstMatch(of: Self.unavailable) != nil)
    }

    @Test("the core imports the codec and nothing else")
    func imports() throws {
        for file in try Repository.files(in: "Client/Sources/HermesClientCore", suffix: ".swift") {
            for (module, line) in file.imports {
                #expect(module == "MQTTCodec", "\(file.path):\(line) imports \(module)")
            }
        }
    }

    @Test("its manifest has no unsafe flags, or no app could depend on it by version")
    func manifest() throws {
        let lines = try Repository.file("Client/Package.swift").lines
        #expect(!lines.contains { $0.contains("unsafeFlags") })
        let platforms = "platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .visionOS(.v1)]"
        #expect(lines.contains { $0.contains(platforms) })
    }
}
