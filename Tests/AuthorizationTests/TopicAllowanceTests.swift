import Testing

@testable import Authorization

@Suite("The topics that a login allows")
struct TopicAllowanceTests {
    private func ask<Result>(
        _ user: String, _ client: String, _ body: (AccessSubject) -> Result
    ) -> Result {
        Array(user.utf8).withUnsafeBytes { user in
            Array(client.utf8).withUnsafeBytes { client in
                body(AccessSubject(userName: user, clientID: client))
            }
        }
    }

    private func allows(
        _ filters: [String], _ topic: String, user: String = "anna", client: String = "phone"
    ) throws -> Bool {
        let allowance = try TopicAllowance(publish: filters, subscribe: [])
        var steps = 0
        return ask(user, client) { subject in
            Array(topic.utf8).withUnsafeBytes {
                allowance.allows(.publish, topic: $0, for: subject, steps: &steps)
            }
        }
    }

    private func extent(
        _ filters: [String], _ asked: String, user: String = "anna", client: String = "phone"
    ) throws -> TopicAllowance.Extent {
        let allowance = try TopicAllowance(publish: nil, subscribe: filters)
        var steps = 0
        return ask(user, client) { subject in
            Array(asked.utf8).withUnsafeBytes {
                allowance.extent(ofFilter: $0, for: subject, steps: &steps)
            }
        }
    }

    @Test("filters match as those of rules do")
    func matches() throws {
        #expect(try allows(["a/+", "b/#"], "a/x"))
        #expect(try allows(["a/+", "b/#"], "b"))
        #expect(try !allows(["a/+", "b/#"], "a/x/y"))
        #expect(try !allows(["#"], "$SYS/broker"))
        #expect(try !allows([], "a"))
    }

    @Test("placeholders stand for the client's own names")
    func placeholders() throws {
        #expect(try allows(["up/%u/%c"], "up/anna/phone"))
        #expect(try !allows(["up/%u/%c"], "up/bert/phone"))
        #expect(try !allows(["up/%u/%c"], "up/%u/%c"))
    }

    @Test(
        "a name that is a wildcard or more than one level is no name",
        arguments: ["+", "#", "a/b", "", "$SYS", "a\u{1}", "\u{2}"])
    func names(_ name: String) throws {
        #expect(try !allows(["up/%u"], "up/\(name)", user: name))
        #expect(try !allows(["up/%u/x"], "up/anna/x", user: name))
        #expect(try !allows(["%c/#"], "orders/1", client: name))
        #expect(try extent(["up/%u/#"], "up/#", user: name) == .nothing)
        #expect(try extent(["up/%c/#"], "up/#", client: name) == .nothing)
    }

    @Test(
        "of a filter the whole, a part or nothing",
        arguments: [
            (["a/#"], "a/b", .whole), (["a/#"], "a/#", .whole), (["a/b"], "a/+", .part),
            (["a/b"], "c", .nothing), ([], "a", .nothing), (["#"], "#", .whole),
            (["a/b", "a/+"], "a/+", .whole), (["x/%u"], "x/anna", .whole),
            (["x/%u"], "x/+", .part), (["x/%u"], "x/bert", .nothing), (["#"], "$SYS/#", .nothing),
        ] as [([String], String, TopicAllowance.Extent)])
    func extents(_ filters: [String], _ asked: String, _ expected: TopicAllowance.Extent) throws {
        #expect(try extent(filters, asked) == expected)
    }

    @Test("a missing list leaves all to the rules")
    func missing() throws {
        let allowance = try TopicAllowance(publish: nil, subscribe: ["a"])
        var steps = 0
        ask("anna", "phone") { subject in
            Array("x".utf8).withUnsafeBytes { topic in
                #expect(allowance.allows(.publish, topic: topic, for: subject, steps: &steps))
                #expect(!allowance.allows(.subscribe, topic: topic, for: subject, steps: &steps))
            }
        }
    }

    @Test("an extent says nothing less than its topics: whole and nothing hold for each")
    func agrees() throws {
        let filters = ["a", "a/+", "a/#", "+/b", "#", "a/b/c", "%u/#", "a/%c", "+/+", "$s/#"]
        let topics = ["a", "a/b", "a/b/c", "a/phone", "anna", "anna/x", "c/b", "$s/a", "$s", "c"]
        for list in filters {
            for asked in filters where !asked.contains("%") {
                let extent = try extent([list], asked)
                for topic in topics where FilterMatch.matches(filter: asked, topic: topic) {
                    let isAllowed = try allows([list], topic)
                    if extent == .whole { #expect(isAllowed, "\(list) \(asked) \(topic)") }
                    if extent == .nothing { #expect(!isAllowed, "\(list) \(asked) \(topic)") }
                }
            }
        }
    }

    @Test(
        "malformed lists are refused",
        arguments: [["a/#/b"], ["a+"], [""], ["$share/g/a"], ["a%u"], ["a/\u{1}"], ["\u{0}"]])
    func malformed(_ filters: [String]) {
        #expect(throws: TopicAllowance.Malformed.self) {
            try TopicAllowance(publish: filters, subscribe: nil)
        }
        #expect(throws: TopicAllowance.Malformed.self) {
            try TopicAllowance(publish: nil, subscribe: filters)
        }
    }
}
