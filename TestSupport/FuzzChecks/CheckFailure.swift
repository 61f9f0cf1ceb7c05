/// A claim that did not hold for one input; what a fuzz target reports and a replay fails with.
package struct CheckFailure: Error, CustomStringConvertible {
    /// What was expected and what was found.
    package let description: String

    package init(_ description: String) { self.description = description }

    /// Throws unless the claim holds.
    static func unless(
        _ claim: Bool, _ description: @autoclosure () -> String
    ) throws(CheckFailure) {
        if !claim { throw CheckFailure(description()) }
    }
}
