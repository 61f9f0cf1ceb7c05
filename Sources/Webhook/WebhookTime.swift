import Glibc

/// Time and chance, which tests replace.
struct WebhookTime: Sendable {
    /// The UNIX time in seconds.
    var now: @Sendable () -> Int64 = { Int64(time(nil)) }
    /// Waits; ends early when the task is cancelled.
    var sleep: @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
    /// 0 to 1.
    var random: @Sendable () -> Double = { Double.random(in: 0...1) }
}
