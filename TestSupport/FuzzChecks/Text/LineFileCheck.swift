import Credentials
import LineFiles

/// Any bytes are a file of users or tokens, or a list of malformed lines.
///
/// An input is a file. Checked are: mistakes name lines of the file, in its order, and print nothing of
/// it that acts on a terminal; a file that is written is read as the same file, with as many lines; each
/// entry is one by itself. A password file is written as it was read, byte for byte.
enum LineFileCheck<Format: LineFormat> {
    private static var mostListed: Int { 20 }

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        let file: LineFile<Format>
        switch parse(input) {
        case .success(let parsed): file = parsed
        case .failure(let error):
            trace?("\(error)")
            try check(error, in: input)
            return
        }
        trace?("\(file.entries)")
        let contents = file.contents
        guard case .success(let again) = parse(contents), again == file, again.contents == contents
        else { throw CheckFailure("read as another file: \(contents)") }
        let endsWithin = input.last.map { $0 != UInt8(ascii: "\n") } ?? false
        let whole = input + (endsWithin ? [UInt8(ascii: "\n")] : [])
        try CheckFailure.unless(
            lineEnds(contents) == lineEnds(whole),
            "\(lineEnds(contents)) lines out of \(lineEnds(whole))")
        if Format.self == PasswordLines.self {
            try CheckFailure.unless(contents == whole, "written as \(contents)")
        }
        for entry in file.entries {
            let line = Format.text(of: entry)
            guard case .success(let alone) = parse(line), alone.entries == [entry] else {
                throw CheckFailure("\(entry) is not read from its own line")
            }
        }
    }

    private static func check(
        _ error: LineFileError<Format>, in input: [UInt8]
    ) throws(CheckFailure) {
        guard case .malformed(_, let problems) = error, !problems.isEmpty else {
            throw CheckFailure("a file that was read is refused: \(error)")
        }
        try PrintedText.check(
            error.description,
            lines: min(problems.count, mostListed) + (problems.count > mostListed ? 1 : 0))
        var last = 1
        for problem in problems {
            try CheckFailure.unless(problem.line >= last, "\(problem) stands behind line \(last)")
            try PrintedText.check(line: problem.line, in: input)
            last = problem.line
        }
    }

    private static func lineEnds(_ bytes: [UInt8]) -> Int {
        bytes.count { $0 == UInt8(ascii: "\n") }
    }

    private static func parse(
        _ bytes: [UInt8]
    ) -> Result<LineFile<Format>, LineFileError<Format>> {
        do throws(LineFileError<Format>) {
            return .success(try LineFile(parsing: bytes, path: "file"))
        } catch {
            return .failure(error)
        }
    }
}
