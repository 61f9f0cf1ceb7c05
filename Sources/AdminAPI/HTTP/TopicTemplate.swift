/// A topic name with placeholders, such as `orders/{sales_id}/{order_id}/status`.
package struct TopicTemplate: Hashable, Sendable {
    private enum Level: Hashable {
        case fixed(String)
        case place(String)
    }

    private let levels: [Level]

    /// - Parameters:
    ///   - text: Levels separated by `/`; a level in braces is a placeholder.
    ///   - places: The placeholders that must occur; others must not.
    /// - Throws: ``TopicTemplateError`` for text that cannot become a topic name.
    package init(_ text: String, places: [String]) throws(TopicTemplateError) {
        func refuse(_ reason: String) -> TopicTemplateError {
            TopicTemplateError(template: text, reason: reason)
        }
        var levels: [Level] = []
        for part in text.split(separator: "/", omittingEmptySubsequences: false) {
            if part.hasPrefix("{"), part.hasSuffix("}") {
                let name = String(part.dropFirst().dropLast())
                guard places.contains(name) else { throw refuse("{\(name)} is not known") }
                levels.append(.place(name))
            } else if part.contains(where: { "{}+#\0".contains($0) }) {
                throw refuse("the level \"\(part)\" holds one of { } + # or NUL")
            } else {
                levels.append(.fixed(String(part)))
            }
        }
        for name in places where !levels.contains(.place(name)) {
            throw refuse("{\(name)} must be one of its levels")
        }
        if case .fixed(let first) = levels[0], first.hasPrefix("$") {
            throw refuse("it begins with $, which is the broker's")
        }
        self.levels = levels
    }

    /// The topic name with identifiers in place of the placeholders.
    func filled(_ identifiers: [String: String]) -> String {
        levels.map { level in
            switch level {
            case .fixed(let text): return text
            case .place(let name):
                guard let identifier = identifiers[name] else {
                    preconditionFailure("no identifier for {\(name)}")
                }
                return identifier
            }
        }.joined(separator: "/")
    }
}

/// A template cannot become a topic name.
package struct TopicTemplateError: Error, Hashable, CustomStringConvertible {
    package var template: String
    package var reason: String

    package var description: String { "the topic template \"\(template)\" is wrong: \(reason)" }
}
