import Hummingbird
import PlainText

/// The entity tags of a header If-Match or If-None-Match. Those of this API hold no comma.
enum EntityTags {
    static func list(_ header: String) -> [ForeignText] {
        header.parts(separator: ",", omittingEmpty: true).map { tag in
            let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
            return ForeignText(Substring(tag.utf8.drop(while: isBlank).prefix { !isBlank($0) }))
        }
    }
}

extension Response {
    /// Replaces a successful answer to GET by 304 when the caller's If-None-Match names its version
    /// (RFC 9110, section 13.1.2). An answer without an entity tag has no version that could be
    /// named, but `*` means any.
    mutating func answerUnlessChanged(_ ifNoneMatch: String) {
        guard status == .ok else { return }
        let isNamed = EntityTags.list(ifNoneMatch).contains { wanted in
            if wanted == ForeignText("*") { return true }
            guard let tag = headers[.eTag] else { return false }
            // The comparison is the weak one.
            return Self.strong(wanted.string) == ForeignText(tag)
        }
        guard isNamed else { return }
        var kept: HTTPFields = [:]
        kept[.eTag] = headers[.eTag]
        self = Response(status: .notModified, headers: kept)
    }

    /// The tag without `W/`.
    private static func strong(_ tag: String) -> ForeignText {
        ForeignText(tag.text(after: "W/").map { String($0) } ?? tag)
    }
}
