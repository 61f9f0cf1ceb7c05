/// The form of shared subscriptions, `$share/<group>/<filter>`.
extension SharedSubscriptions {
    /// True for a filter that asks for a shared subscription, well-formed or not.
    public static func isShared(_ filter: UnsafeRawBufferPointer) -> Bool {
        filter.starts(with: "$share/".utf8) || filter.elementsEqual("$share".utf8)
    }

    /// The topic filter behind the group's name. `nil` unless the text is
    /// `$share/<group>/<filter>`, where both have at least one character and the group's name has
    /// no `+` or `#`.
    public static func filter(in text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        let prefix = 7
        guard isShared(text), text.count > prefix else { return nil }
        var end = prefix
        while end < text.count, text[end] != TopicTree.separator {
            guard text[end] != 0x2B, text[end] != 0x23 else { return nil }
            end += 1
        }
        guard end > prefix, end + 1 < text.count else { return nil }
        return UnsafeRawBufferPointer(rebasing: text[(end + 1)...])
    }
}
