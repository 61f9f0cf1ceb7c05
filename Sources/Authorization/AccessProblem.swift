import Credentials

/// One thing that is wrong with an ACL file: where, what, and how to put it right.
public struct AccessProblem: Equatable, Sendable {
    /// Counts from 1; `nil` when the whole file is meant.
    public let line: Int?
    /// Without a full stop; text of the file is already escaped.
    public let complaint: String
    /// One or more whole sentences.
    public let cure: String

    init(line: Int?, _ complaint: String, cure: String) {
        self.line = line
        self.complaint = complaint
        self.cure = cure
    }
}

/// Why an ACL file cannot be used: everything that is wrong with it. Rules in use stay in use.
public struct AccessRulesError: Error, Equatable, Sendable {
    public let path: String
    /// At least one, in the order of the file.
    public let problems: [AccessProblem]
    /// Problems beyond the first 100, which are counted and not kept.
    public let omittedCount: Int
    /// The file could not be read for a reason that may pass.
    public var isTransient = false

    /// How many problems of one file are kept.
    static let capacity = 100
}

extension AccessRulesError: CustomStringConvertible {
    /// One problem a line, `file:line: what. How to put it right.`, ready for a terminal.
    public var description: String {
        let file = VisibleText.escaped(path)
        var lines = problems.map { problem in
            let place = problem.line.map { "\(file):\($0)" } ?? file
            return "\(place): \(problem.complaint). \(problem.cure)"
        }
        if omittedCount > 0 {
            lines.append("\(file): and \(omittedCount) more. Correct those above first.")
        }
        return lines.joined(separator: "\n")
    }
}

extension AccessRulesError: FileRefusal {}
