import OperatorConfiguration

/// Any bytes are a YAML document that we take or an error, and any text is a configuration or a list of
/// its mistakes.
///
/// An input is a file. Checked are: every mistake names a line of the file, if it names one, and prints
/// nothing of it that acts on a terminal; there are not more of them than are kept; a document with
/// its aliases written out is no larger than these may make it, and its content, written in another
/// form, is read again as the same; the same file gives the same answer.
enum ConfigurationCheck {
    /// A document with more than this is not written out again.
    private static let mostWrittenBytes = 40_000

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        try checkDocument(input, trace: trace)
        let text = String(decoding: input, as: UTF8.self)
        let loaded = load(text)
        trace?("\(loaded)")
        try CheckFailure.unless(loaded == load(text), "the same file gives another answer")
        guard case .failure(let error) = loaded else { return }
        try CheckFailure.unless(
            (1...100).contains(error.problems.count), "\(error.problems.count) mistakes are kept")
        try PrintedText.check(
            error.description, lines: error.problems.count + (error.omittedCount > 0 ? 1 : 0))
        for problem in error.problems {
            guard case .file(let name, let line?) = problem.origin else { continue }
            try CheckFailure.unless(name == fileName, "a mistake of \(name)")
            try PrintedText.check(line: line, in: input)
        }
    }

    private static let fileName = "hermes.yaml"

    private static func load(_ text: String) -> Result<HermesConfiguration, ConfigurationError> {
        do throws(ConfigurationError) {
            return .success(
                try ConfigurationLoader(source: .text(text, name: fileName)).load())
        } catch {
            return .failure(error)
        }
    }

    // MARK: The document

    private static func checkDocument(
        _ input: [UInt8], trace: ((String) -> Void)?
    ) throws(CheckFailure) {
        let document: YAMLDocument
        do throws(YAMLDocument.SyntaxError) {
            document = try YAMLDocument(bytes: input)
        } catch {
            trace?("no document: \(error)")
            try PrintedText.check("\(error.complaint). \(error.cure)")
            if let line = error.line { try PrintedText.check(line: line, in: input) }
            return
        }
        guard let root = document.root else { return }
        var nodes = 0
        try walk(root, in: input, &nodes)
        try CheckFailure.unless(
            nodes <= 400 * (input.count + 1), "\(nodes) nodes out of \(input.count) bytes")
        let written = Array(text(of: root).utf8)
        guard written.count <= mostWrittenBytes, depth(of: root) <= YAMLDocument.maximumDepth
        else { return }
        trace?(String(decoding: written, as: UTF8.self))
        guard let again = try? YAMLDocument(bytes: written), let copy = again.root,
            Array(text(of: copy).utf8) == written
        else {
            throw CheckFailure("\(String(decoding: written, as: UTF8.self)) is read as another")
        }
    }

    private static func walk(
        _ node: YAMLNode, in input: [UInt8], _ nodes: inout Int
    ) throws(CheckFailure) {
        nodes += 1
        try PrintedText.check(line: node.line, in: input)
        switch node.content {
        case .scalar: break
        case .sequence(let items): for item in items { try walk(item, in: input, &nodes) }
        case .mapping(let entries):
            for entry in entries {
                try walk(entry.key, in: input, &nodes)
                try walk(entry.value, in: input, &nodes)
                if let last = entry.lineOfLast { try PrintedText.check(line: last, in: input) }
            }
        }
    }

    private static func depth(of node: YAMLNode) -> Int {
        switch node.content {
        case .scalar: 1
        case .sequence(let items): 1 + (items.map(depth).max() ?? 0)
        case .mapping(let entries):
            1 + (entries.map { max(depth(of: $0.key), depth(of: $0.value)) }.max() ?? 0)
        }
    }

    /// The node on one line, every scalar in double quotes.
    private static func text(of node: YAMLNode) -> String {
        switch node.content {
        case .scalar(let text, _):
            "\""
                + text.unicodeScalars.map { scalar in
                    let digits = String(scalar.value, radix: 16)
                    return "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
                }.joined() + "\""
        case .sequence(let items): "[" + items.map(text).joined(separator: ", ") + "]"
        case .mapping(let entries):
            "{"
                + entries.map { "? \(text(of: $0.key)) : \(text(of: $0.value))" }
                .joined(separator: ", ") + "}"
        }
    }
}
