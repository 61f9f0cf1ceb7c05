import Hummingbird

/// The headers that this API uses, found in one pass; each lookup by name would visit all headers.
struct RequestHeaders {
    private(set) var authorization: String?
    private(set) var contentEncoding: String?
    private(set) var contentLength: String?
    private(set) var contentType: String?
    private(set) var expect: String?
    private(set) var origin: String?
    private(set) var transferEncoding: String?
    /// True when the fields contain a `Host`: the first one is the authority, so this is a second.
    private(set) var hasSecondHost = false

    init(_ fields: HTTPFields) {
        for field in fields {
            switch field.name.canonicalName {
            case "authorization": Self.add(field.value, to: &authorization)
            case "content-encoding": Self.add(field.value, to: &contentEncoding)
            case "content-length": Self.add(field.value, to: &contentLength)
            case "content-type": Self.add(field.value, to: &contentType)
            case "expect": Self.add(field.value, to: &expect)
            case "host": hasSecondHost = true
            case "origin": Self.add(field.value, to: &origin)
            case "transfer-encoding": Self.add(field.value, to: &transferEncoding)
            default: continue
            }
        }
    }

    /// Several fields of one name are a list (RFC 9110, section 5.3).
    private static func add(_ value: String, to present: inout String?) {
        if let first = present { present = "\(first), \(value)" } else { present = value }
    }
}
