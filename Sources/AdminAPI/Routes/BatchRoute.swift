import Hummingbird
import RequestText

extension Route {
    /// A route that carries out what each line asks for (NDJSON), and answers with a line for each.
    static func batch(_ path: String, _ publisher: Publisher, _ work: some BatchWork) -> Route {
        Route(
            method: .post, path: path, access: .scope(.publish, topics: .checked, rate: .messages),
            body: .lines
        ) { request throws(Problem) in
            guard let stream = request.stream else {
                preconditionFailure("\(path) got no lines to read")
            }
            let place = try publisher.batches.take()
            let batch = BatchStream(
                work: work, source: stream, caller: request.caller,
                maximumLineBytes: publisher.maximumPacketBytes)
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
