/// The source of a setting's value.
package enum ConfigurationOrigin: Hashable, Sendable {
    /// A configuration file. The line counts from 1; `nil` means the whole file.
    case file(String, line: Int?)
    /// The name of an environment variable.
    case environment(String)
    /// A command-line flag, with its dashes.
    case flag(String)
    /// A request to the running broker.
    case runTime
}

extension ConfigurationOrigin: CustomStringConvertible {
    package var description: String {
        switch self {
        case .file(let name, line: let line?): "\(shown(name)):\(line)"
        case .file(let name, line: nil): shown(name)
        case .environment(let name): shown(name)
        case .flag(let flag): flag
        case .runTime: "run time"
        }
    }
}

/// One error in the configuration: its place, the complaint, and how to correct it.
package struct ConfigurationProblem: Hashable, Sendable {
    /// `nil` when no file, variable or flag is the cause.
    package let origin: ConfigurationOrigin?
    /// The key as an operator writes it, such as `listeners[0].port`; `nil` when no key is meant.
    package let key: String?
    /// The complaint without a full stop; text from the operator is escaped.
    package let complaint: String
    /// Advice in one or more whole sentences.
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

/// All errors of a configuration, found in one pass.
///
/// A broker does not start with it; a running one keeps its configuration. `description` is ready
/// for a terminal: one problem per line, untrusted text escaped.
package struct ConfigurationError: Error, Hashable, Sendable {
    /// At least one, in the order of layers (file by line, environment, flags).
    package let problems: [ConfigurationProblem]
    /// Number of problems beyond `ProblemList.capacity`, which are counted and not kept.
    package let omittedCount: Int
    /// The format that the configuration wants for the log, which has these problems too.
    package var format = HermesConfiguration.Logging.Format.text
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

/// Collects problems up to a bound, so that a malformed file cannot fill memory.
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

    /// The error with all problems; `nil` without any.
    var error: ConfigurationError? {
        guard !kept.isEmpty else { return nil }
        let ordered = kept.enumerated().sorted { left, right in
            (Self.rank(left.element), left.offset) < (Self.rank(right.element), right.offset)
        }
        return ConfigurationError(problems: ordered.map(\.element), omittedCount: omittedCount)
    }

    /// Sort key: the file by line (below 2^20, its size limit), then environment, flags, run time.
    private static func rank(_ problem: ConfigurationProblem) -> Int {
        switch problem.origin {
        case .file(_, line: let line): line ?? 0
        case .environment: 1 << 40
        case .flag: 1 << 41
        case .runTime: 1 << 42
        case nil: 1 << 43
        }
    }
}
