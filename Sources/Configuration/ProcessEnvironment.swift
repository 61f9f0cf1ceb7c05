// glibc's `environ` is a plain global variable, which Swift 6 cannot see to be safe.
@preconcurrency import Glibc

/// The variables that this process was started with.
package enum ProcessEnvironment {
    /// Copies the environment. Bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// Call it before threads start that change the environment (`setenv`); ours never do.
    package static func current() -> [String: String] {
        var variables: [String: String] = [:]
        // NULL after clearenv(), although its type does not say so.
        guard UInt(bitPattern: environ) != 0 else { return variables }
        var entry = environ
        while let text = entry.pointee {
            let pair = String(cString: text).split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            // The first of two equal names is the one that getenv returns.
            if pair.count == 2, variables[String(pair[0])] == nil {
                variables[String(pair[0])] = String(pair[1])
            }
            entry += 1
        }
        return variables
    }
}
