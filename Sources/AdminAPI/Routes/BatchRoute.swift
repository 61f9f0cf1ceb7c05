import BrokerAPI
import Hummingbird
import RequestText

/// A message of an HTTP caller that has been checked.
struct PreparedMessage: Sendable {
    var publication: Publication
    var id: MessageID
}

extension Route {
    /// A route that publishes a message for each line (NDJSON), and answers with a line for each.
    static func batch(
        _ path: String, _ publisher: Publisher, _ prepare: @escaping BatchStream.Prepare
    ) -> Route {
        Route(
            method: .post, path: path, access: .scope(.publish), body: .lines
        ) { request throws(Problem) in
            guard let stream = request.stream else {
                preconditionFailure("\(path) got no lines to read")
            }
            let place = try publisher.batches.take()
            let batch = BatchStream(
                publisher: publisher, source: stream, caller: request.caller,
                maximumLineBytes: publisher.maximumPacketBytes
            ) { line, caller throws(Problem) in
                let message = try prepare(line, caller)
                try publisher.check(message.publication, of: caller)
                return message
            }
            return Response(
                status: .ok, headers: [.contentType: "application/x-ndjson"],
                body: ResponseBody { writer in
                    defer { withExtendedLifetime(place) {} }
                    try await batch.run(&writer)
                })
        }
    }
}

extension JSONFields {
    /// The members of an object on a line of its own.
    init(line: UnsafeRawBufferPointer, known: Known) throws(Problem) {
        let value: JSONValue
        do throws(JSONSyntaxError) {
            value = try JSONParser.parse(line)
        } catch {
            throw Problem(
                .invalidJSON, "The line is not JSON at column \(error.column): \(error.reason).",
                fix: "Send one JSON object on each line, encoded in UTF-8.")
        }
        try self.init(value, known: known, subject: "line")
    }
}
