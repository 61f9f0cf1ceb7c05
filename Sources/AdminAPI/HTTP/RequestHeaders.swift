import Hummingbird

/// The headers that this API uses, found in one pass; each lookup by name would visit all headers.
struct RequestHeaders {
    private(set) var authorization: String?
    private(set) var contentEncoding: String?
    private(set) var contentLength: String?
    private(set) var contentType: String?
    private(set) var expect: String?
    private(set) var idempotencyKey: String?
    private(set) var ifMatch: String?
    private(set) var ifNoneMatch: String?
    private(set) var origin: String?
    private(set) var requestID: String?
    private(set) var traceParent: String?
    private(set) var transferEncoding: String?
    /// True when the fields contain a `Host`: the first one is the authority, so this is a second.
    private(set) var hasSecondHost = false
    private var unsupported: (name: String, cure: String)?

    init(_ fields: HTTPFields) {
        for field in fields {
            switch field.name.canonicalName {
            case "authorization": Self.add(field.value, to: &authorization)
            case "content-encoding": Self.add(field.value, to: &contentEncoding)
            case "content-length": Self.add(field.value, to: &contentLength)
            case "content-type": Self.add(field.value, to: &contentType)
            case "expect": Self.add(field.value, to: &expect)
            case "idempotency-key": Self.add(field.value, to: &idempotencyKey)
            case "host": hasSecondHost = true
            case "if-match": Self.add(field.value, to: &ifMatch)
            case "if-none-match": Self.add(field.value, to: &ifNoneMatch)
            case "origin": Self.add(field.value, to: &origin)
            case "traceparent": Self.add(field.value, to: &traceParent)
            case "x-request-id": Self.add(field.value, to: &requestID)
            case "transfer-encoding": Self.add(field.value, to: &transferEncoding)
            default:
                guard let cure = Self.cure(forUnsupported: field.name.canonicalName) else {
                    continue
                }
                unsupported = (field.name.rawName, cure)
            }
        }
    }

    /// - Throws: ``Problem`` for a header that would change the meaning of the request, and that the
    ///   route does not honour: passing it over would do what the caller did not ask for.
    func refuseUnsupported(by route: Route) throws(Problem) {
        var condition: (name: String, cure: String)?
        if ifMatch != nil, !route.honoursIfMatch { condition = ("If-Match", Self.noVersions) }
        if ifNoneMatch != nil, route.method != .get {
            condition = (
                "If-None-Match", "Leave it out: it asks for what GET and HEAD answer."
            )
        }
        guard let unsupported = unsupported ?? condition else { return }
        throw Problem(
            .unsupportedHeader, "The header \(unsupported.name) is not honoured here.",
            field: unsupported.name, fix: unsupported.cure)
    }

    /// The caller's key for the message that the request publishes; `nil` for none.
    ///
    /// - Throws: ``Problem`` for a key that cannot be one, and on a route that publishes no message
    ///   or many.
    func idempotencyKey(for route: Route) throws(Problem) -> String? {
        guard let key = idempotencyKey else { return nil }
        guard route.publishesMessages, route.body != .lines else {
            throw Problem(
                .unsupportedHeader, "The header Idempotency-Key is not honoured here.",
                field: "Idempotency-Key",
                fix: route.body == .lines
                    ? "Leave it out, and give each line a field idempotency_key."
                    : "Leave it out: only messages are published once.")
        }
        guard MessageID.isValid(key) else {
            throw Problem(
                .invalidHeader, "The header Idempotency-Key \(MessageID.fault(of: key)), once.",
                field: "Idempotency-Key", fix: MessageID.keyCure)
        }
        return key
    }

    private static let noVersions =
        "Leave it out: answers have no versions that a condition could name."

    private static func cure(forUnsupported name: String) -> String? {
        switch name {
        // If-Modified-Since is passed over: nothing here has a time of its last change (RFC 9110,
        // section 13.1.3), so the whole answer is what it asks for.
        case "if-range", "if-unmodified-since":
            noVersions
        case "range", "content-range":
            "Leave it out: bodies go whole, and lists have the parameters limit and cursor."
        case "x-http-method", "x-http-method-override", "x-method-override":
            "Leave it out, and write the method into the request line."
        case "content-transfer-encoding":
            "Leave it out and send the payload's own bytes, or payload_base64 to /v1/messages."
        default: nil
        }
    }

    /// Several fields of one name are a list (RFC 9110, section 5.3).
    private static func add(_ value: String, to present: inout String?) {
        if let first = present { present = "\(first), \(value)" } else { present = value }
    }
}
