/// A measurement that could not be made, and why, in words for the person who started it.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
