import Hummingbird
import NIOCore

/// The answer to a batch whose caller reads only once it has sent everything: counts, and the lines
/// that failed.
struct BatchSummary: Sendable {
    /// Failed lines that are listed; later ones are only counted.
    static let mostErrors = 1_000

    private(set) var done = 0
    private(set) var repeated = 0
    private(set) var failed = 0
    /// The results of failed lines, each with a line feed.
    private var errors = ByteBuffer()

    /// Counts a line; takes its result away, and keeps it if the line failed.
    mutating func add(_ end: LineEnd, _ result: inout ByteBuffer) {
        defer { result.clear() }
        switch end {
        case .done: done += 1
        case .repeated: repeated += 1
        case .failed:
            failed += 1
            if failed <= Self.mostErrors { errors.writeBuffer(&result) }
        }
    }

    var response: Response {
        var body = ByteBuffer()
        body.writeString(
            "{\"lines\":\(done + repeated + failed),\"done\":\(done),\"duplicates\":\(repeated),"
                + "\"failed\":\(failed),\"errors\":[")
        let lines = errors.readableBytesView.split(separator: UInt8(ascii: "\n"))
        for (index, line) in lines.enumerated() {
            if index > 0 { body.writeStaticString(",") }
            body.writeBytes(line)
        }
        body.writeStaticString("]}\n")
        return Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: body))
    }
}
