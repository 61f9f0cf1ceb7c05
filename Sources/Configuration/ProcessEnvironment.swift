// glibc's `environ` is a global variable, which Swift 6 cannot prove safe.
@preconcurrency import Glibc

/// The variables that this process was started with.
package enum ProcessEnvironment {
    /// Copies the environment. Bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// Call it before any thread calls `setenv`; threads of Hermes never do.
    package static func current() -> [String: String] {
        var variables: [String: String] = [:]
        // NULL after clearenv(), although the imported type excludes it.
        guard UInt(bitPattern: environ) != 0 else { return variables }
        var entry = environ
        while let text = entry.pointee {
            let pair = String(cString: text).split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            // getenv also returns the first of two equal names.
            if pair.count == 2, variables[String(pair[0])] == nil {
                variables[String(pair[0])] = String(pair[1])
            }
            entry += 1
        }
        return variables
    }
}
