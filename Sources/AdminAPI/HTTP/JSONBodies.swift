import AdminModel
import FoundationEssentials
import Hummingbird

extension Response {
    /// A value as JSON, with its members in the order of their names.
    static func json(_ value: some Encodable) throws(Problem) -> Response {
        guard let document = jsonDocument(value) else {
            throw Problem(.internalError, "The answer could not be written as JSON.")
        }
        return Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: document))
    }

    /// The problem document that answers a refused request.
    init(_ problem: Problem) {
        self.init(
            status: problem.kind.status, headers: problem.documentHeaders,
            body: ResponseBody(byteBuffer: problem.document))
    }
}

extension Problem {
    /// The document's bytes.
    var document: ByteBuffer {
        guard let document = jsonDocument(model) else {
            preconditionFailure("a problem document holds only text and numbers")
        }
        return document
    }

    /// The headers that go with the document, but for its length.
    var documentHeaders: HTTPFields {
        var fields = headers
        fields[.contentType] = ProblemModel.contentType
        return fields
    }
}

private func jsonDocument(_ value: some Encodable) -> ByteBuffer? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(value)).map { ByteBuffer(bytes: $0) }
}

extension AdminRequest {
    /// The body as JSON.
    func json() throws(Problem) -> JSONValue {
        do {
            return try JSONParser.parse(body)
        } catch {
            throw Problem(
                .invalidJSON, "The body is not JSON at \(error).",
                fix: "Send one JSON object, encoded in UTF-8.")
        }
    }
}
