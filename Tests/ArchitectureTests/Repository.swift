import FoundationEssentials
import Testing

/// The files of this repository, by their paths from its root.
enum Repository {
    /// The folder above `Tests/ArchitectureTests`.
    private static let root = #filePath.split(separator: "/").dropLast(3)
        .reduce("") { "\($0)/\($1)" }

    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: "\(root)/\(path)")
    }

    /// The names in a folder, without hidden ones.
    static func names(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(root)/\(folder)")
            .filter { !$0.hasPrefix(".") }.sorted()
    }

    /// The files in a folder and the folders below it whose names end in `suffix`.
    static func files(in folder: String, suffix: String) throws -> [SourceFile] {
        let paths = try FileManager.default.subpathsOfDirectory(atPath: "\(root)/\(folder)")
        return try paths.filter { $0.hasSuffix(suffix) }.sorted().map {
            try file("\(folder)/\($0)")
        }
    }

    static func file(_ path: String) throws -> SourceFile {
        let bytes = try Data(contentsOf: URL(filePath: "\(root)/\(path)"))
        return SourceFile(path: path, text: String(decoding: bytes, as: UTF8.self))
    }
}

/// One file, with what the tests read in it.
struct SourceFile {
    let path: String
    let lines: [Substring]

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// The number of lines, without the empty one after the last line break.
    var lineCount: Int { lines.last == "" ? lines.count - 1 : lines.count }

    /// The modules that a Swift file imports; lines count from 1.
    var imports: [(module: String, line: Int)] {
        let pattern =
            #/
            ^\s*(?:(?:@\w+(?:\([^)]*\))?|public|package|internal|private|fileprivate)\s+)*
            import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)
            /#
        return lines.enumerated().compactMap { index, line in
            line.firstMatch(of: pattern).map { (String($0.1), index + 1) }
        }
    }

    /// The types that a Swift file declares at its top level.
    var types: [(name: String, line: Int)] {
        let pattern =
            #/
            ^(?:(?:@\w+(?:\([^)]*\))?|(?!import)[a-z]+)\s+)*
            (?:struct|class|enum|actor|protocol)\s+(\w+)
            /#
        return lines.enumerated().compactMap { index, line in
            line.firstMatch(of: pattern).map { (String($0.1), index + 1) }
        }
    }
}
