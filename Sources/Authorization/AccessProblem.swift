import PlainText
import SystemFiles

/// One error in an ACL file: the place, the complaint, and how to correct it.
public struct AccessProblem: Equatable, Sendable {
    /// Counts from 1; `nil` when the complaint is about the whole file.
    public let line: Int?
    /// The complaint without a full stop; text from the file is escaped.
    public let complaint: String
    /// Advice in one or more whole sentences.
    public let cure: String

    init(line: Int?, _ complaint: String, cure: String) {
        self.line = line
        self.complaint = complaint
        self.cure = cure
    }
}

/// An ACL file cannot be used. Holds everything that is wrong with it; rules that are already in
/// use stay in use.
public struct AccessRulesError: Error, Equatable, Sendable {
    public let path: String
    /// At least one, in the order of the file.
    public let problems: [AccessProblem]
    /// Number of problems beyond the first 100, which are counted and not kept.
    public let omittedCount: Int
    /// True when the file could not be read for a reason that may pass, such as a lack of
    /// descriptors.
    public var isTransient = false

    /// The largest number of problems that are kept.
    static let capacity = 100
}

extension AccessRulesError: CustomStringConvertible {
    /// One problem per line, `file:line: complaint. Advice.`, ready for a terminal.
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
