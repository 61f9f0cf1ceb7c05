import Glibc
import Logins

/// Measures what the verification of a token costs: in full, by algorithm, and remembered.
///
/// Prints processor time of this thread per token in microseconds, the median of several rounds.
@main
struct LoginBench {
    private static let now: Int64 = 1_800_000_060
    private static let tokens = 1_000
    private static let rounds = 7

    static func main() throws {
        print("algorithm  bytes  verified us  remembered us")
        for name in TokenAlgorithm.allCases.map(\.rawValue) {
            guard let signer = Signer(name) else { continue }
            let path = "/tmp/login-bench-\(getpid()).key"
            defer { unlink(path) }
            try write(signer.file, to: path)
            let keys = try (name == "HS256" ? KeyFile.secret(path) : .publicKey(path)).load()
            let policy = TokenPolicy(issuer: "https://login.example", audiences: ["hermes"])
            let logins = TokenLogins(TokenVerifier(keys: keys, policy: policy))
            let all = (0..<tokens).map { signer.token($0) }
            let verified = try median {
                for token in all { _ = try logins.verify(token, now: now) }
            }
            var found = 0
            let remembered = median {
                for token in all where logins.recall(token, now: now) != nil { found += 1 }
            }
            precondition(found == tokens * rounds, "\(found) tokens were remembered")
            print(
                column(name, 9), column("\(all[0].count)", 6), column(verified, 12),
                column(remembered, 14))
        }
    }

    /// The median of several rounds, in microseconds per token.
    private static func median(_ round: () throws -> Void) rethrows -> String {
        var times: [Double] = []
        for _ in 0..<rounds {
            let begun = processorTime()
            try round()
            times.append((processorTime() - begun) / Double(tokens))
        }
        let tenths = Int((times.sorted()[rounds / 2] * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// Microseconds of this thread.
    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }

    private static func write(_ bytes: [UInt8], to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        precondition(descriptor >= 0, "cannot write \(path)")
        precondition(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
        close(descriptor)
    }

    private static func column(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
