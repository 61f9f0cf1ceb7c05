/// A value of a YAML file and the line where it begins, which counts from 1.
struct YAMLNode {
    enum Content {
        /// Text, which is plain when it stands without quotes.
        case scalar(String, isPlain: Bool)
        case sequence([YAMLNode])
        case mapping([Entry])
    }

    /// One key of a mapping with its value.
    struct Entry {
        let key: YAMLNode
        let value: YAMLNode
        /// Where the mapping gives the same key for the last time; `nil` for that last time itself.
        var lineOfLast: Int?
    }

    let content: Content
    let line: Int
    /// Whether an alias may repeat the node.
    let isAnchored: Bool

    /// The text of a scalar.
    var text: String? {
        guard case .scalar(let text, _) = content else { return nil }
        return text
    }

    /// Whether a value is absent: nothing, `~` or `null`, without quotes.
    var isNull: Bool {
        guard case .scalar(let text, isPlain: true) = content else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(text)
    }

    /// The kind of the node, for the operator to read.
    var shape: String {
        switch content {
        case .scalar: "a single value"
        case .mapping: "a mapping of keys"
        case .sequence: "a list"
        }
    }
}
