import Glibc
import OperatorConfiguration

/// The environment of a command: everything outside the program that it uses, so that tests can
/// replace it.
package struct CommandContext: Sendable {
    package var environment: [String: String]
    package var console: Console
    /// Open descriptor that `--password-stdin`, and a message without `-m` and `-f`, read from.
    package var standardInput: CInt = STDIN_FILENO
    /// The terminal that passwords are asked on.
    package var terminalPath = "/dev/tty"
    /// Milliseconds since 1970.
    package var now: @Sendable () -> Int64
    /// Waits between two looks of a command that watches.
    package var pause: @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
    /// Makes the transport for requests to the broker; the duration limits each request.
    package var makeTransport: @Sendable (AdminEndpoint, Duration, ClientTLS) -> any AdminTransport

    /// The context of the real process: its environment, descriptors, clock and network.
    package static func process() -> CommandContext {
        CommandContext(
            environment: ProcessEnvironment.current(), console: .standard(), now: wallClock,
            makeTransport: { HTTPTransport(endpoint: $0, timeout: $1, tls: $2) })
    }

    private static func wallClock() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
