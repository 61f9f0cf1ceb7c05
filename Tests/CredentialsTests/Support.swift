import Credentials
import Testing

extension Argon2Parameters {
    /// The smallest Argon2 parameters, for fast tests.
    static var cheap: Argon2Parameters {
        get throws {
            try #require(Argon2Parameters(memoryKiB: 8, iterations: 1, parallelism: 1))
        }
    }
}

/// A cheap hash of that password.
func cheapHash(_ password: String) throws -> PasswordHash {
    try PasswordHash(hashing: SecretBytes(copying: Array(password.utf8)), parameters: .cheap)
}

extension PasswordHash {
    func matches(_ password: String) -> Bool {
        Array(password.utf8).withUnsafeBytes { matches($0) }
    }
}
