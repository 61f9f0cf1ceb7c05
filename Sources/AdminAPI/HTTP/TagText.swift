import PlainText

/// A checked tag of clients: 1 to 64 bytes of UTF-8 without control characters and commas, and
/// without white space at its ends.
struct TagText: Hashable, Sendable {
    static let maximumByteCount = 64

    /// Its UTF-8; `String` would take different bytes for the same text.
    let bytes: [UInt8]

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// - Parameters:
    ///   - text: The tag as a request gives it.
    ///   - field: The field of the request, for the error.
    /// - Throws: ``Problem`` that names the broken rule.
    init(_ text: String, field: String) throws(Problem) {
        func refuse(_ why: String, fix: String) -> Problem {
            Problem(
                .invalidField, "The tag \"\(text.visible())\" \(why).", field: field, fix: fix)
        }
        if text.isEmpty { throw refuse("is empty", fix: "Name a tag, such as store-17.") }
        if text.utf8.count > Self.maximumByteCount {
            throw refuse(
                "has \(text.utf8.count) bytes; it may have \(Self.maximumByteCount)",
                fix: "Choose a shorter one.")
        }
        let scalars = text.unicodeScalars
        if scalars.contains(where: { $0 == "," || $0.properties.generalCategory == .control }) {
            throw refuse(
                "holds a comma or a control character",
                fix: "Leave it out; several tags are several elements of the list.")
        }
        let ends = [scalars.first, scalars.last].compactMap { $0 }
        if ends.contains(where: \.properties.isWhitespace) {
            throw refuse("begins or ends with white space", fix: "Trim it.")
        }
        bytes = Array(text.utf8)
    }

    /// Checks the tags of a list, and takes each once, in its order.
    static func list(_ texts: [String], field: String) throws(Problem) -> [TagText] {
        var tags: [TagText] = []
        var seen = Set<TagText>()
        for text in texts {
            let tag = try TagText(text, field: field)
            if seen.insert(tag).inserted { tags.append(tag) }
        }
        return tags
    }
}
