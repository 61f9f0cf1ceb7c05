/// A value of a YAML file and the line where it begins, which counts from 1.
package struct YAMLNode {
    package enum Content {
        /// `isPlain` means without quotes.
        case scalar(String, isPlain: Bool)
        case sequence([YAMLNode])
        case mapping([Entry])
    }

    /// One key of a mapping with its value.
    package struct Entry {
        package let key: YAMLNode
        package let value: YAMLNode
        /// The line where the mapping repeats the key for the last time; `nil` if it does not.
        package internal(set) var lineOfLast: Int?
    }

    package let content: Content
    package let line: Int
    /// True when the node has an anchor, so that an alias may repeat it.
    let isAnchored: Bool

    /// The text of a scalar.
    var text: String? {
        guard case .scalar(let text, _) = content else { return nil }
        return text
    }

    /// True for no value, `~` and `null`, each without quotes.
    var isNull: Bool {
        guard case .scalar(let text, isPlain: true) = content else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(text)
    }

    /// The kind of node, for an error message.
    var shape: String {
        switch content {
        case .scalar: "a single value"
        case .mapping: "a mapping of keys"
        case .sequence: "a list"
        }
    }
}
