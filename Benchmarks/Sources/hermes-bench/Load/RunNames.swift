/// Names of one run: topics and client identifiers that no other run uses, all of equal length.
struct RunNames {
    /// So many topics, and clients of one role, have names of equal length.
    static var most: Int { 100_000 }

    let run: UInt32
    private let prefix: String

    /// A run of its own, drawn at random.
    init() { self.init(run: UInt32.random(in: 1 ... .max)) }

    /// The names of an earlier run.
    init(run: UInt32) {
        self.run = run
        prefix = "bench/" + Self.padded(String(run, radix: 16), 8)
    }

    func topic(_ publisher: Int) -> [UInt8] {
        Array("\(prefix)/\(Self.padded(String(publisher), 5))".utf8)
    }

    /// A topic to which nobody subscribes.
    func reportTopic(_ publisher: Int) -> [UInt8] { topic(publisher) + Array("/report".utf8) }

    /// Matches ``topic(_:)`` of every publisher.
    var everyTopic: [UInt8] { Array("\(prefix)/+".utf8) }

    func clientID(_ role: String, _ number: Int) -> [UInt8] {
        Array(
            "bench-\(Self.padded(String(run, radix: 16), 8))-\(role)\(Self.padded(String(number), 5))"
                .utf8)
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: "0", count: max(0, width - text.count)) + text
    }
}
