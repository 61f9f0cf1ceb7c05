/// Where a setting's value came from, as an operator finds it again.
package enum ConfigurationOrigin: Hashable, Sendable {
    /// A configuration file; the line counts from 1, and is `nil` when the whole file is meant.
    case file(String, line: Int?)
    /// An environment variable, by its name.
    case environment(String)
    /// A command-line flag, with its dashes.
    case flag(String)
}

extension ConfigurationOrigin: CustomStringConvertible {
    package var description: String {
        switch self {
        case .file(let name, line: let line?): "\(shown(name)):\(line)"
        case .file(let name, line: nil): shown(name)
        case .environment(let name): shown(name)
        case .flag(let flag): flag
        }
    }
}

/// One thing that is wrong with the configuration: where, what, and how to put it right.
package struct ConfigurationProblem: Hashable, Sendable {
    /// `nil` when no file, variable or flag is to blame.
    package let origin: ConfigurationOrigin?
    /// The key as an operator writes it, such as `listeners[0].port`; `nil` when no key is meant.
    package let key: String?
    /// What is wrong, without a full stop; text of the operator's is already escaped.
    package let complaint: String
    /// One or more whole sentences that say what to do.
    package let cure: String
}

extension ConfigurationProblem: CustomStringConvertible {
    package var description: String {
        var parts: [String] = []
        if let origin { parts.append(origin.description) }
        if let key { parts.append(key) }
        parts.append("\(complaint). \(cure)")
        return parts.joined(separator: ": ")
    }
}

/// Everything that is wrong with a configuration, found in one pass.
///
/// The broker does not start with it, and a reload that meets it keeps what runs. `description`
/// is ready for a terminal: one problem a line, everything untrusted escaped.
package struct ConfigurationError: Error, Hashable, Sendable {
    /// At least one, in the order of layers (file by line, environment, flags).
    package let problems: [ConfigurationProblem]
    /// Problems beyond `ProblemList.capacity`, which are counted and not kept.
    package let omittedCount: Int
}

extension ConfigurationError: CustomStringConvertible {
    package var description: String {
        var lines = problems.map(\.description)
        if omittedCount > 0 {
            lines.append("and \(omittedCount) more. Correct those above first.")
        }
        return lines.joined(separator: "\n")
    }
}

/// Collects problems up to a bound, so that a file full of nonsense cannot fill memory.
struct ProblemList {
    static let capacity = 100

    private var kept: [ConfigurationProblem] = []
    private var omittedCount = 0

    mutating func add(
        _ complaint: String, cure: String, key: String? = nil, at origin: ConfigurationOrigin?
    ) {
        guard kept.count < Self.capacity else {
            omittedCount += 1
            return
        }
        kept.append(
            ConfigurationProblem(origin: origin, key: key, complaint: complaint, cure: cure))
    }

    /// The error that holds all of it; `nil` when nothing was wrong.
    var error: ConfigurationError? {
        guard !kept.isEmpty else { return nil }
        let ordered = kept.enumerated().sorted { left, right in
            (Self.rank(left.element), left.offset) < (Self.rank(right.element), right.offset)
        }
        return ConfigurationError(problems: ordered.map(\.element), omittedCount: omittedCount)
    }

    /// The layers in the order they are read, and within the file by line. Lines are below 2^20
    /// (the file is), so that the later layers sort behind every one.
    private static func rank(_ problem: ConfigurationProblem) -> Int {
        switch problem.origin {
        case .file(_, line: let line): line ?? 0
        case .environment: 1 << 40
        case .flag: 1 << 41
        case nil: 1 << 42
        }
    }
}
