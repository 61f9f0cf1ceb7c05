/// The body of every error answer: a problem document (RFC 9457, `application/problem+json`).
public struct ProblemModel: Codable, Sendable, Equatable, Error {
    /// The kind for programs: `urn:hermes:problem:` and a word of docs/http-api.md.
    public var type: String
    /// The kind in words; the same for every occurrence.
    public var title: String
    /// The HTTP status code of the answer.
    public var status: Int
    /// The fault in this request, and its place.
    public var detail: String
    /// The query parameter, header or JSON field at fault; `nil` for other faults.
    public var field: String?
    /// The cure: what the caller or an operator can do.
    public var fix: String
    /// The name of the request, which lines of the log about it have too; `nil` where the answer has
    /// another one.
    public var requestID: String?

    private enum CodingKeys: String, CodingKey {
        case type, title, status, detail, field, fix
        case requestID = "request_id"
    }

    /// Media type of the document.
    public static let contentType = "application/problem+json"

    public init(
        type: String, title: String, status: Int, detail: String, field: String? = nil,
        fix: String, requestID: String? = nil
    ) {
        self.type = type
        self.title = title
        self.status = status
        self.detail = detail
        self.field = field
        self.fix = fix
        self.requestID = requestID
    }
}
