import Structures

/// A shard keeps its promises to several clients, whatever they, the disk and the clock do.
///
/// An input is a program: three bytes of limits, then steps (``ShardStep``). After each the model says
/// what may have been sent; at the end all clients return, take what they are owed, and everything
/// is removed again.
enum ShardCheck {
    /// More steps than this make an input slow and no more telling.
    private static let mostSteps = 300

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        // The pool outlives the shard, whose memory came from it.
        try execute(input, trace).destroy()
    }

    private static func execute(
        _ input: [UInt8], _ trace: ((String) -> Void)?
    ) throws(CheckFailure) -> BytePool {
        var program = ByteProgram(input)
        let run = ShardRun(ShardSetup(&program), trace)
        for _ in 0..<mostSteps {
            guard !program.isAtEnd, !run.isShutDown else { break }
            try run.perform(ShardStep(&program))
        }
        try run.finish()
        return run.harness.shard.pool
    }
}
