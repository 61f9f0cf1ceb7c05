import BrokerAPI

extension Setting {
    /// Keys of locks after wrong passwords.
    static let lockoutSettings: [Setting] = [
        .single(
            "limits.lockout_attempts", \.limits.lockoutAttempts, .addressLimit(1_000_000),
            "Wrong passwords of one user from one address within lockout_window; then CONNECTs of that user from there are refused for lockout_time, without a look at the password. auto is 10, and no limit on loopback."
        ),
        .single(
            "limits.lockout_attempts_per_address", \.limits.lockoutAttemptsPerAddress,
            .addressLimit(1_000_000),
            "The same of one address, whatever the users; then every CONNECT with a password from there is refused. auto is 100, and no limit on loopback."
        ),
        .single(
            "limits.lockout_window", \.limits.lockoutWindow,
            .duration(.seconds(1)...(.seconds(86_400))),
            "Time in which wrong passwords add up."),
        .single(
            "limits.lockout_time", \.limits.lockoutTime,
            .duration(.seconds(1)...(.seconds(86_400))),
            "How long a lock after wrong passwords lasts."),
    ]
}
