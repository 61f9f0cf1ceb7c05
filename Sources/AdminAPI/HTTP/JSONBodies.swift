import BrokerAPI
import FoundationEssentials
import Hummingbird
import RequestText

extension Response {
    /// A value as one line of JSON, with members sorted by name and a line feed.
    static func json(_ value: some Encodable) throws(Problem) -> Response {
        guard var document = jsonLine(value) else {
            throw Problem(
                .internalError, "The answer could not be written as JSON.",
                fix: "Report this with the log of the broker.")
        }
        document.writeStaticString("\n")
        return Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: document))
    }

    /// The answer to a rejected request: its problem document.
    init(_ problem: Problem) {
        self.init(
            status: problem.kind.status, headers: problem.documentHeaders,
            body: ResponseBody(byteBuffer: problem.document))
    }
}

extension Response {
    /// The answer to a publish.
    static func json(_ result: PublishResult) -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: PublishResult.document(result)))
    }
}

extension PublishResult {
    /// The same bytes as `JSONEncoder` and a line feed, at a twentieth of the cost, since such
    /// answers are frequent.
    static func document(_ result: PublishResult) -> ByteBuffer {
        var document = ByteBuffer()
        document.reserveCapacity(192)
        document.writeStaticString("{")
        document.writeMembers(of: result)
        document.writeStaticString("}\n")
        return document
    }
}

extension ByteBuffer {
    /// Appends a line of a batch's answer: the line's number with the answer to its publish.
    mutating func write(_ result: PublishResult, line number: Int) {
        writeStaticString("{\"line\":")
        writeString(String(number))
        writeStaticString(",")
        writeMembers(of: result)
        writeStaticString("}\n")
    }

    /// Appends a line of a batch's answer: the line's number with the answer to its push.
    mutating func write(_ push: PushAccepted, line number: Int) {
        writeStaticString("{\"line\":")
        writeString(String(number))
        writeStaticString(",\"duplicate\":")
        writeStaticString(push.duplicate ? "true" : "false")
        writeStaticString(",\"durability\":\"")
        writeVisibleASCII(push.durability)
        writeStaticString("\",\"push_id\":\"")
        writeVisibleASCII(push.pushID)
        writeStaticString("\"")
        write(push.scheduled)
        writeStaticString("}\n")
    }

    /// Appends a line of an import's answer.
    mutating func write(_ user: UserImported) {
        guard let line = jsonLine(user) else {
            preconditionFailure("a user holds only text, a number and a truth value")
        }
        writeImmutableBuffer(line)
        writeStaticString("\n")
    }

    /// Appends a line of a batch's answer: the line's number with its problem.
    mutating func write(_ problem: Problem, line number: Int) {
        writeStaticString("{\"line\":")
        writeString(String(number))
        writeStaticString(",\"error\":")
        writeImmutableBuffer(problem.line)
        writeStaticString("}\n")
    }

    fileprivate mutating func writeMembers(of result: PublishResult) {
        writeStaticString("\"dropped\":")
        writeString(String(result.counts.dropped))
        writeStaticString(",\"duplicate\":")
        writeStaticString(result.duplicate ? "true" : "false")
        writeStaticString(",\"durability\":\"")
        writeVisibleASCII(result.durability)
        writeStaticString("\",\"matched\":")
        writeString(String(result.counts.matched))
        writeStaticString(",\"message_id\":\"")
        writeVisibleASCII(result.messageID)
        writeStaticString("\"")
        if let reason = result.counts.notRetained {
            writeStaticString(",\"not_retained\":\"")
            writeString(reason.rawValue)
            writeStaticString("\"")
        }
        writeStaticString(",\"online\":")
        writeString(String(result.counts.online))
        writeStaticString(",\"queued\":")
        writeString(String(result.counts.queued))
        write(result.scheduled)
    }

    private mutating func write(_ scheduled: ScheduledTime?) {
        guard let scheduled else { return }
        writeStaticString(",\"scheduled\":{\"deliver_at_ms\":")
        writeString(String(scheduled.deliverAtMs))
        writeStaticString("}")
    }

    /// Appends visible ASCII as content of a JSON string.
    fileprivate mutating func writeVisibleASCII(_ text: String) {
        guard text.utf8.contains(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") })
        else {
            writeString(text)
            return
        }
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                writeInteger(UInt8(ascii: "\\"))
            }
            writeInteger(byte)
        }
    }
}

extension Problem {
    /// The bytes of the document.
    var document: ByteBuffer {
        var document = line
        document.writeStaticString("\n")
        return document
    }

    /// The document without its line feed.
    var line: ByteBuffer {
        guard let line = jsonLine(model) else {
            preconditionFailure("a problem document holds only text and numbers")
        }
        return line
    }

    /// The headers of the document, except its length.
    var documentHeaders: HTTPFields {
        var fields = headers
        if fields[.retryAfter] == nil { fields[.retryAfter] = kind.retryAfter }
        fields[.contentType] = ProblemModel.contentType
        return fields
    }
}

/// A value as JSON on one line, without the line feed; `nil` for one that JSON cannot express.
func jsonLine(_ value: some Encodable) -> ByteBuffer? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(value)).map { ByteBuffer(bytes: $0) }
}

extension RouteRequest {
    /// Parses the body as JSON.
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
