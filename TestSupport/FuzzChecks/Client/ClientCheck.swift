/// A client keeps its promises to its app, to the log and to the protocol, whatever a broker sends,
/// and does the same in whatever pieces that comes.
///
/// An input is a seed for the pieces and for the client's random numbers, then a program: what the
/// broker sends, and what network, clock and app do.
enum ClientCheck {
    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        var program = ByteProgram(input)
        var run = ClientRun(seed: UInt64(program.byte()))
        while !program.isAtEnd {
            let step = ClientStep(&program)
            trace?("\(step)")
            try run.perform(step)
        }
        try run.finish()
    }
}
