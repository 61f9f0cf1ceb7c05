import Structures

/// A shard keeps its promises to several clients, whatever they, the disk and the clock do.
///
/// An input is a program: three bytes of limits, then steps (``ShardStep``). After each step the
/// model checks the packets sent. At the end all clients return, receive what is due, and
/// everything is removed.
enum ShardCheck {
    /// More steps make an input slow without testing more.
    private static let mostSteps = 300

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        // The pool owns the shard's memory, so it is destroyed after it.
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
