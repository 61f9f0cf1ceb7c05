import BrokerAPI

/// Lines of a batch that go to the data plane together.
struct LineGroup: Sendable {
    /// One line that is answered.
    struct Line: Sendable {
        /// Counts from 1.
        var number: Int
        var content: Content
    }

    enum Content: Sendable {
        /// The next of ``publications``, with the identifier of its message.
        case message(MessageID)
        case problem(Problem)
    }

    /// Most lines of a group.
    static let maximumLines = 1_024
    /// Bytes of topics and payloads from which on a group takes no more lines.
    static let fullBytes = 1 << 18

    var lines: [Line] = []
    var publications: [Publication] = []
    private var bytes = 0

    var isEmpty: Bool { lines.isEmpty }
    var isFull: Bool { lines.count >= Self.maximumLines || bytes >= Self.fullBytes }

    mutating func append(_ message: PreparedMessage, line number: Int) {
        lines.append(Line(number: number, content: .message(message.id)))
        bytes += message.publication.topic.count + message.publication.payload.count
        publications.append(message.publication)
    }

    mutating func append(_ problem: Problem, line number: Int) {
        lines.append(Line(number: number, content: .problem(problem)))
    }

    /// Adds the lines of a later group, if both together make no more than one.
    mutating func merge(_ later: LineGroup) -> Bool {
        guard lines.count + later.lines.count <= Self.maximumLines,
            bytes + later.bytes <= Self.fullBytes
        else { return false }
        lines += later.lines
        publications += later.publications
        bytes += later.bytes
        return true
    }
}
