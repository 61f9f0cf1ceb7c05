/// The reason for which a file or folder of the configuration cannot be used; the description names
/// it and the cure.
package protocol FileRefusal: Error, CustomStringConvertible {
    /// True if it may pass by itself, as a shortage of descriptors does, or a data directory whose disk
    /// is not mounted yet. Everything else, a missing file too, needs a person.
    var isTransient: Bool { get }
}

/// Everything that keeps a broker from starting with its files: at least one refusal.
package struct FileRefusals: FileRefusal {
    /// One or more lines each.
    package private(set) var problems: [String] = []
    /// All of them may pass.
    package private(set) var isTransient = true

    package init() {}

    /// The value that `body` gives; `nil` when it is refused, which is kept.
    package mutating func collect<Value, Refusal: FileRefusal>(
        _ body: () throws(Refusal) -> Value
    ) -> Value? {
        do throws(Refusal) {
            return try body()
        } catch {
            problems.append(error.description)
            isTransient = isTransient && error.isTransient
            return nil
        }
    }

    package var description: String { problems.joined(separator: "\n") }
}
