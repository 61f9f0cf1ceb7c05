import Authorization
import PlainText

/// A checked topic name to which HTTP may publish.
struct PublishTopic: Hashable, Sendable {
    let text: String

    /// The UTF-8 of the name.
    var bytes: [UInt8] { Array(text.utf8) }

    /// - Parameters:
    ///   - text: A topic name (section 4.7 of MQTT 3.1.1).
    ///   - maximumLevels: `limits.max_topic_levels`.
    ///   - field: The field of the request, for the error.
    /// - Throws: ``Problem`` of kind `invalidTopic` that names the broken rule.
    init(_ text: String, maximumLevels: Int, field: String) throws(Problem) {
        func refuse(_ why: String, fix: String) -> Problem {
            Problem(.invalidTopic, "The topic name \(why).", field: field, fix: fix)
        }
        let utf8 = text.utf8
        if utf8.isEmpty { throw refuse("is empty", fix: "Name a topic, such as orders/4711.") }
        // Only for errors, because escaping costs more than publishing.
        var shown: String { "\"\(text.visible())\"" }
        if utf8.count > 65_535 {
            throw refuse(
                "\(shown) has \(utf8.count) bytes; at most 65535 fit a PUBLISH packet",
                fix: "Name a shorter topic.")
        }
        if utf8.contains(UInt8(ascii: "+")) || utf8.contains(UInt8(ascii: "#")) {
            throw refuse(
                "\(shown) holds a wildcard, `+` or `#` [MQTT-3.3.2-2]",
                fix: "Publish to one topic at a time; wildcards belong into subscriptions.")
        }
        if utf8.contains(0) {
            throw refuse("\(shown) holds NUL [MQTT-1.5.3-2]", fix: "Leave U+0000 out.")
        }
        let levels = utf8.count { $0 == UInt8(ascii: "/") } + 1
        if levels > maximumLevels {
            throw refuse(
                "\(shown) has \(levels) levels; the broker takes \(maximumLevels)",
                fix: "Use fewer levels, or raise limits.max_topic_levels.")
        }
        // Where no client may publish, HTTP may not either: nobody would get it, or those who take
        // it for the broker's own.
        if Array(utf8).withUnsafeBytes({ ClosedTopics.contains($0) }) {
            throw refuse(
                "\(shown) is below $SYS, $CONTROL or $hermes, where nobody but the broker publishes "
                    + "to others",
                fix: "Choose a topic outside them; devices of phones are registered with "
                    + "PUT /v1/clients/{id}/device.")
        }
        self.text = text
    }
}
