/// Checks names and passwords against one state of the password file.
///
/// Any number of threads may use it. A check takes about 20 ms and 19 MiB with the standard
/// parameters, so a broker uses a worker thread and bounds the number of checks.
package struct PasswordVerifier: Equatable, Sendable {
    private let hashes: [PasswordHash]
    private let indexOfUser: [[UInt8]: Int]

    /// The users of `file`; later changes need a new verifier.
    package init(_ file: PasswordFile) {
        let entries = file.entries
        hashes = entries.map(\.hash)
        indexOfUser = Dictionary(
            uniqueKeysWithValues: entries.enumerated().map { ($1.userName.bytes, $0) })
    }

    /// The number of users; without any, every password is refused.
    package var userCount: Int { hashes.count }

    /// True if there is such a user. Tells it in another time than an unknown one may take, so it is
    /// for decisions of who is asked, not for answers.
    package func knows(_ userName: [UInt8]) -> Bool { indexOfUser[userName] != nil }

    /// True if there is such a user with that password.
    ///
    /// An unknown name costs as much as a known one: its password is checked against some user's
    /// hash and the result is ignored. The choice is fixed per name, so that varying times of
    /// different parameters reveal nothing. Without users the answer comes at once.
    package func verify(userName: [UInt8], password: [UInt8]) -> Bool {
        guard !hashes.isEmpty else { return false }
        let known = indexOfUser[userName]
        let hash = hashes[known ?? decoyIndex(for: userName)]
        let matches = password.withUnsafeBytes { hash.matches($0) }
        return matches && known != nil
    }

    /// Seeded per process, so that the choice cannot be predicted from outside.
    private func decoyIndex(for userName: [UInt8]) -> Int {
        Int(UInt(bitPattern: userName.hashValue) % UInt(hashes.count))
    }
}
