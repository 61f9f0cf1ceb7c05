/// Checks names and passwords against one state of the password file.
///
/// A value without side effects: any number of threads may ask at once. One answer costs some
/// 20 ms and 19 MiB with the standard parameters, so a broker asks from a worker thread and bounds
/// how many ask at once.
package struct PasswordVerifier: Equatable, Sendable {
    private let hashes: [PasswordHash]
    private let indexOfUser: [[UInt8]: Int]

    /// The users of `file` as it is now; later changes need a new verifier.
    package init(_ file: PasswordFile) {
        let entries = file.entries
        hashes = entries.map(\.hash)
        indexOfUser = Dictionary(
            uniqueKeysWithValues: entries.enumerated().map { ($1.userName.bytes, $0) })
    }

    /// The number of users; without any, every password is refused.
    package var userCount: Int { hashes.count }

    /// True if there is such a user with that password.
    ///
    /// An unknown name costs as much as a known one: its password is checked against some user's
    /// hash and the answer thrown away. Which user's is fixed per name, so that a file of unequal
    /// parameters does not show it by times that vary. Without users the answer comes at once,
    /// for there is no name to guess.
    package func verify(userName: [UInt8], password: [UInt8]) -> Bool {
        guard !hashes.isEmpty else { return false }
        let known = indexOfUser[userName]
        let hash = hashes[known ?? decoyIndex(for: userName)]
        let matches = password.withUnsafeBytes { hash.matches($0) }
        return matches && known != nil
    }

    /// The hash value is seeded per process: nobody outside can tell which user it picks.
    private func decoyIndex(for userName: [UInt8]) -> Int {
        Int(UInt(bitPattern: userName.hashValue) % UInt(hashes.count))
    }
}
