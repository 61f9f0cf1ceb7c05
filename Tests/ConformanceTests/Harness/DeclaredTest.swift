import Glibc
import Testing

/// A test of this target, read from its source.
struct DeclaredTest {
    let title: String
    let function: String
    let file: String
    /// From the title to the function's name.
    let declaration: Substring

    /// The name in `docs/conformance.md`: `WillConformance.retained`.
    var name: String { "\(file.dropLast(".swift".count)).\(function)" }

    /// The statements at the beginning of the title: `MQTT-1.2.3-4, MQTT-1.2.3-5: words`.
    var statements: [String] {
        guard let colon = title.firstIndex(of: ":") else { return [] }
        return title[..<colon].split(separator: ",").map { $0.filter { $0 != " " } }
            .filter { $0.hasPrefix("MQTT-") || $0.hasPrefix("MQTT5-") }
    }

    /// The traps that the title names: `MQTT5-1.2.3-4, trap 5: words`, or `Section 1.2: words; trap 5`.
    var traps: [Int] {
        title.lowercased().matches(of: #/\btrap (\d+)/#).compactMap { Int($0.output.1) }
    }
}

/// The sources of one folder of tests, and the tests in them.
struct TestSources {
    let sources: [(file: String, text: String)]
    let tests: [DeclaredTest]

    /// Reads the Swift files of `folder` but those that compare the tests themselves.
    init(folder: String) throws {
        var sources: [(String, String)] = []
        for file in try Self.files(in: folder) where file.hasSuffix(".swift") {
            guard !["CoverageTests.swift", "Coverage5Tests.swift"].contains(file) else { continue }
            sources.append((file, try Self.text(of: "\(folder)/\(file)")))
        }
        self.sources = sources
        tests = sources.flatMap { file, text in Self.tests(in: text, file) }
    }

    private static func tests(in text: String, _ file: String) -> [DeclaredTest] {
        let pattern = #/@Test\(\s*"(?<title>(?:[^"\\]|\\.)*)"(?<rest>.*?)func (?<name>\w+)\(/#
            .dotMatchesNewlines()
        return text.matches(of: pattern).map { match in
            DeclaredTest(
                title: String(match.output.title), function: String(match.output.name), file: file,
                declaration: match.output.rest)
        }
    }

    /// Expects that every test runs over every transport, those of `frames` over those with frames, and
    /// that none is switched off.
    static func expectAllRun(
        _ tests: [DeclaredTest], in sources: [(file: String, text: String)], frames: String
    ) {
        for test in tests {
            #expect(
                test.declaration.contains("arguments: Transport.all")
                    // Section 6 is about frames.
                    || test.file == frames
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

    static func files(in folder: String) throws -> [String] {
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

    static func text(of path: String) throws -> String {
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
