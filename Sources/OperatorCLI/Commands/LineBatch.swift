import BrokerAPI
import FoundationEssentials
import PlainText
import SystemFiles

/// Sends the broker a file of lines, and counts the results, one for each line.
struct LineBatch {
    typealias Take = (ArraySlice<UInt8>) throws(CommandFailure) -> Void

    /// Errors that are shown one by one.
    private static let shownErrors = 10

    /// The path of the file; "-" is standard input.
    let path: String
    /// What became of a line without an error, such as "published".
    let verb: String
    /// Prints the results as they come, and no summary.
    let printsResults: Bool

    /// `send` sends what a descriptor of that name brings, and passes the results on in parts.
    func run(
        in context: CommandContext,
        _ send: (CInt, String, Take) async throws(CommandFailure) -> Void
    ) async throws(CommandFailure) {
        var results = BatchResults(shownErrors: Self.shownErrors, verb: verb)
        let take: Take = { part throws(CommandFailure) in
            if printsResults { try context.console.print(bytes: Array(part)) }
            results.take(part)
        }
        do throws(CommandFailure) {
            if path == "-" {
                try await send(context.standardInput, "standard input", take)
            } else {
                let file = try open()
                try await send(file.descriptor, path, take)
            }
        } catch {
            guard results.lines > 0 else { throw error }
            throw CommandFailure(
                error.status,
                """
                \(error.message)
                The answer ended after \(results.lines) results. Send the lines behind them \
                again; some of them may have been \(verb).
                """)
        }
        if !printsResults { try context.console.print(results.summary) }
        guard results.failed == 0 else {
            throw CommandFailure(
                .refused, "\(results.failed) of \(results.lines) lines were not \(verb).")
        }
    }

    private func open() throws(CommandFailure) -> OpenFile {
        do throws(SystemError) {
            return try OpenFile(path, waits: true)
        } catch {
            throw CommandFailure(.localFile, error.complaint)
        }
    }
}

/// The results of a batch, counted as they come in any pieces.
struct BatchResults {
    private struct Failure: Decodable {
        var line: Int
        var error: ProblemModel
    }

    private let shownErrors: Int
    private let verb: String
    private var begun: [UInt8] = []
    private(set) var lines = 0
    private(set) var failed = 0
    /// The first errors, ready for a terminal.
    private var errors: [String] = []

    init(shownErrors: Int, verb: String) {
        self.shownErrors = shownErrors
        self.verb = verb
    }

    mutating func take(_ part: ArraySlice<UInt8>) {
        begun += part
        var start = begun.startIndex
        while let end = begun[start...].firstIndex(of: 0x0A) {
            count(begun[start..<end])
            start = end + 1
        }
        begun.removeSubrange(..<start)
    }

    private mutating func count(_ line: ArraySlice<UInt8>) {
        lines += 1
        // Results begin with the line's number. Those without an error need no decoding.
        let members = line.drop { $0 != UInt8(ascii: ",") }
        guard members.starts(with: Array(#","error":"#.utf8)) else { return }
        failed += 1
        guard errors.count < shownErrors,
            let failure = try? JSONDecoder().decode(Failure.self, from: Data(line))
        else { return }
        let sentences = [failure.error.detail, failure.error.fix].compactMap(\.self)
        errors.append(
            "line \(failure.line): "
                + VisibleText.printable(sentences.joined(separator: " ")))
    }

    /// Counts and first errors, as lines for a terminal.
    var summary: String {
        var list = FieldList()
        list.add("lines", "\(lines)")
        list.add(verb, "\(lines - failed)")
        list.add("failed", "\(failed)")
        var text = list.rendered()
        for error in errors { text += error + "\n" }
        if failed > errors.count { text += "and \(failed - errors.count) more\n" }
        return text
    }
}
