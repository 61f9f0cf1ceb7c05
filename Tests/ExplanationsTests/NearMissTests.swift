import Testing

@testable import Explanations

@Suite("Subscriptions that nearly match")
struct NearMissTests {
    @Test(
        "each slip is named",
        arguments: [
            ("/a/b", "a/b", "it begins with a slash, and the topic does not"),
            ("a/#", "/a/b", "the topic begins with a slash, and it does not"),
            ("a/b/", "a/b", "it ends with a slash, and the topic does not"),
            ("a/+", "a/b/", "the topic ends with a slash, and it does not"),
            ("Orders/+", "orders/7", "capital and small letters differ"),
            ("orders/7 ", "orders/7", "blanks differ"),
            ("or ders/#", "orders/7", "blanks differ"),
            ("orders/*", "orders/7", "* is a letter like any other, and + or # are wildcards"),
            ("orders/*", "orders/7/x", "* is a letter like any other, and + or # are wildcards"),
            (
                "#", "$SYS/broker",
                "a wildcard at its beginning matches no topic that begins with $ [MQTT-4.7.2-1]"
            ),
            (
                "+/broker", "$SYS/broker",
                "a wildcard at its beginning matches no topic that begins with $ [MQTT-4.7.2-1]"
            ),
            ("a/+", "a/b/c", "+ at its end stands for one level, and # would match all below"),
            (
                "a/+", "a",
                "+ at its end asks for one level more than the topic has, and # would not"
            ),
            ("a/b", "a/b/c/d", "the topic has more levels, and it does not end with /#"),
            ("a/b/c", "a/b", "it has a level more than the topic"),
            ("$share/g/a/b/", "a/b", "it ends with a slash, and the topic does not"),
        ])
    func slips(filter: String, topic: String, words: String) {
        #expect(NearMiss.words(filter: filter, topic: topic) == words)
    }

    @Test(
        "what matches, and what is wide of the mark, is none",
        arguments: [
            ("a/#", "a/b"), ("+", "a"), ("$share/g/#", "a"), ("orders/7/#", "orders/8/x"),
            ("b", "a"), ("$SYS/#", "a/b"), ("+", "$SYS/x"), ("#", "a"), ("$share/g", "a"),
            ("/", "a"), ("", "a"), ("a", ""),
        ])
    func none(filter: String, topic: String) {
        #expect(NearMiss.words(filter: filter, topic: topic) == nil)
    }
}
