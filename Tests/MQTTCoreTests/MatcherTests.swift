import Testing

/// Checks the reference matcher of other tests against the specification's examples.
@Suite("Reference matcher")
struct MatcherTests {
    static let matching = [
        ("sport/tennis/player1/#", "sport/tennis/player1"),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking"),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon"),
        ("sport/#", "sport"), ("#", "a"), ("#", "/"), ("#", "a/b/c"),
        ("sport/tennis/+", "sport/tennis/player1"), ("sport/+", "sport/"),
        ("+/+", "/finance"), ("/+", "/finance"), ("+", "finance"), ("+/tennis/#", "a/tennis"),
        ("$SYS/#", "$SYS/broker"), ("$SYS/#", "$SYS"), ("$SYS/monitor/+", "$SYS/monitor/Clients"),
        ("a/$x", "a/$x"), ("a/+", "a/$x"), ("a/#", "a/$x"), ("//", "//"), ("+/+/+", "//"),
    ]
    static let different = [
        ("sport/tennis/+", "sport/tennis/player1/ranking"), ("sport/+", "sport"), ("+", "/finance"),
        ("#", "$SYS/broker"), ("+/monitor/Clients", "$SYS/monitor/Clients"), ("+", "$"),
        ("a", "A"), ("/a", "a"), ("a", "a/"), ("a/+/#", "a"), ("sport/#", "sports"), ("+/", "a"),
    ]

    @Test("matches the pairs that section 4.7 says match", arguments: matching)
    func match(filter: String, topic: String) { #expect(matches(filter, topic)) }

    @Test("rejects the pairs that section 4.7 says differ", arguments: different)
    func noMatch(filter: String, topic: String) { #expect(!matches(filter, topic)) }
}
