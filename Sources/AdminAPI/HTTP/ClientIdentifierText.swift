import PlainText

/// A checked client identifier in a request.
struct ClientIDText: Hashable, Sendable {
    /// As many bytes as an MQTT string may have.
    static let maximumByteCount = 65_535

    /// Its UTF-8; `String` would take different bytes for the same text.
    let bytes: [UInt8]

    /// - Parameters:
    ///   - text: The identifier as a request gives it.
    ///   - field: The field of the request, for the error.
    /// - Throws: ``Problem`` for one that no client can have.
    init(_ text: String, field: String) throws(Problem) {
        func refuse(_ why: String, fix: String) -> Problem {
            Problem(.invalidField, "A client identifier \(why).", field: field, fix: fix)
        }
        if text.isEmpty {
            throw refuse("is empty", fix: "GET /v1/clients lists those of known clients.")
        }
        if text.utf8.count > Self.maximumByteCount {
            throw refuse(
                "has \(text.utf8.count) bytes; a client can have \(Self.maximumByteCount)",
                fix: "Give the identifier that the client connects with.")
        }
        if text.utf8.contains(0) {
            throw refuse(
                "is \"\(text.visible())\", which holds NUL [MQTT-1.5.3-2]",
                fix: "Leave U+0000 out.")
        }
        bytes = Array(text.utf8)
    }
}
