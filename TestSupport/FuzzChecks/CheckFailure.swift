/// A claim that does not hold for an input. A fuzz target reports it, and a replay fails with it.
package struct CheckFailure: Error, CustomStringConvertible {
    /// The expected and the actual result.
    package let description: String

    package init(_ description: String) { self.description = description }

    /// Throws unless the claim holds.
    static func unless(
        _ claim: Bool, _ description: @autoclosure () -> String
    ) throws(CheckFailure) {
        if !claim { throw CheckFailure(description()) }
    }
}
