import Hummingbird
import RequestText

extension Route {
    /// A route that carries out what each line asks for (NDJSON), and answers with a line for each.
    static func batch(_ path: String, _ publisher: Publisher, _ work: some BatchWork) -> Route {
        Route(
            method: .post, path: path, access: .scope(.publish, topics: .checked, rate: .messages),
            body: .lines, query: ["answer"]
        ) { request throws(Problem) in
            guard let stream = request.stream else {
                preconditionFailure("\(path) got no lines to read")
            }
            let place = try publisher.batches.take()
            let batch = BatchStream(
                work: work, source: stream, caller: request.caller,
                maximumLineBytes: publisher.maximumPacketBytes)
            return try await batch.response(request, place)
        }
    }
}

extension BatchStream {
    /// Answers as the caller has asked: `?answer=lines`, the default, with a result for each line
    /// while more are read, or `?answer=errors` with a summary once all are.
    ///
    /// - Throws: ``Problem`` for another word.
    func response(
        _ request: RouteRequest, _ place: BatchPlaces.Place
    ) async throws(Problem) -> Response {
        let word = request.query["answer"] ?? "lines"
        if word.hasBytes(of: "errors") {
            defer { withExtendedLifetime(place) {} }
            return await summary().response
        }
        guard !word.hasBytes(of: "lines") else {
            return Response(
                status: .ok, headers: [.contentType: "application/x-ndjson"],
                body: ResponseBody { writer in
                    defer { withExtendedLifetime(place) {} }
                    try await answerLines(&writer)
                })
        }
        throw Problem(
            .invalidQuery, "The query parameter answer is none of lines and errors.",
            field: "answer",
            fix: "Use errors for one answer behind the last line, or leave it out.")
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
