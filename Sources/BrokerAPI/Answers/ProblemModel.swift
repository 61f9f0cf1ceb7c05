/// The body of every error answer: a problem document (RFC 9457, `application/problem+json`).
package struct ProblemModel: Codable, Sendable, Equatable, Error {
    /// The kind for programs: `urn:hermes:problem:` and a word of docs/http-api.md.
    package var type: String
    /// The kind in words; the same for every occurrence.
    package var title: String
    /// The HTTP status code of the answer.
    package var status: Int
    /// The fault in this request, and its place.
    package var detail: String
    /// The query parameter, header or JSON field at fault; `nil` for other faults.
    package var field: String?
    /// Advice; `nil` when the detail contains it.
    package var fix: String?

    /// Media type of the document.
    package static let contentType = "application/problem+json"

    package init(
        type: String, title: String, status: Int, detail: String, field: String? = nil,
        fix: String? = nil
    ) {
        self.type = type
        self.title = title
        self.status = status
        self.detail = detail
        self.field = field
        self.fix = fix
    }
}
