import Credentials

/// The caller's key by which a message replaces queued ones of its topic.
enum CollapseKey {
    /// The name of a topic and a key in the data plane and the store.
    static func name(_ key: String, topic: [UInt8]) -> UInt128 {
        var name = DigestInput()
        name.append("collapse_key")
        name.append(topic)
        name.append(key)
        return name.digest
    }

    fileprivate static let cure = "Leave it out to replace nothing."
}

extension JSONFields {
    /// `collapse_key`; `nil` to replace nothing.
    func collapseKey() throws(Problem) -> String? {
        guard let text = try string("collapse_key") else { return nil }
        if MessageID.isValid(text) { return text }
        throw wrong("collapse_key", MessageID.fault(of: text), fix: CollapseKey.cure)
    }
}

extension QueryItems {
    /// `collapse_key`; `nil` to replace nothing.
    func collapseKey() throws(Problem) -> String? {
        guard let text = self["collapse_key"] else { return nil }
        if MessageID.isValid(text) { return text }
        throw Problem(
            .invalidQuery, "The query parameter collapse_key \(MessageID.fault(of: text)).",
            field: "collapse_key", fix: CollapseKey.cure)
    }
}
