/// The reason for which a file or folder of the configuration cannot be used; the description names
/// it and the cure.
package protocol FileRefusal: Error, CustomStringConvertible {
    /// True if it may pass by itself, as a shortage of descriptors does, or a data directory whose disk
    /// is not mounted yet. Everything else, a missing file too, needs a person.
    var isTransient: Bool { get }
}

extension FileRefusal {
    /// The description with the key of the setting that names the file before each line; `nil` for a
    /// file that no setting names, or whose description begins with the key.
    package func described(by key: String?) -> String {
        guard let key else { return description }
        return description.split(separator: "\n").map { "\(key): \($0)" }
            .joined(separator: "\n")
    }
}

/// Everything that keeps a broker from starting with its files: at least one refusal.
package struct FileRefusals: FileRefusal {
    /// One or more lines each.
    package private(set) var problems: [String] = []
    /// All of them may pass.
    package private(set) var isTransient = true

    package init() {}

    /// Keeps the refusal of what `body` reads.
    ///
    /// - Parameters:
    ///   - key: See ``FileRefusal/described(by:)``.
    ///   - body: Reads a file.
    /// - Returns: The value that `body` gives; `nil` when it is refused.
    package mutating func collect<Value, Refusal: FileRefusal>(
        of key: String? = nil, _ body: () throws(Refusal) -> Value
    ) -> Value? {
        do throws(Refusal) {
            return try body()
        } catch {
            problems.append(error.described(by: key))
            isTransient = isTransient && error.isTransient
            return nil
        }
    }

    package var description: String { problems.joined(separator: "\n") }
}
