import Testing

@testable import Credentials

@Suite("RecentPasswords")
struct RecentPasswordsTests {
    private let key = PasswordTag.Key()

    private func tag(_ text: String) throws -> PasswordTag {
        try #require(PasswordTag(Array(text.utf8), key))
    }

    @Test("tags of one password agree under one key, and under another do not")
    func keyed() throws {
        #expect(try tag("one").isSame(as: tag("one")))
        #expect(try !tag("one").isSame(as: tag("two")))
        #expect(try !tag("").isSame(as: tag("\0")))
        let other = try #require(PasswordTag(Array("one".utf8), PasswordTag.Key()))
        #expect(try !tag("one").isSame(as: other))
    }

    @Test("users beyond twice the capacity push out the oldest, the youngest stay")
    func bounded() throws {
        var recent = RecentPasswords(capacity: 4)
        let tag = try tag("one")
        let names = (0..<40).map { Array("user\($0)".utf8) }
        for (count, name) in names.enumerated() {
            recent.insert(tag, of: name, atMilliseconds: 1)
            let kept = names.filter { recent.contains(tag, of: $0, atMilliseconds: 1) }
            #expect(kept.count <= 8)
            #expect(kept.suffix(4) == names[...count].suffix(4))
        }
    }

    @Test("a changed password replaces the former, also one from before a turn")
    func replaced() throws {
        var recent = RecentPasswords()
        let anna = Array("anna".utf8)
        recent.insert(try tag("old"), of: anna, atMilliseconds: 0)
        let later = RecentPasswords.lifetimeMilliseconds / 2
        recent.insert(try tag("new"), of: anna, atMilliseconds: later)
        #expect(try recent.contains(tag("new"), of: anna, atMilliseconds: later))
        #expect(try !recent.contains(tag("old"), of: anna, atMilliseconds: later))
    }
}
