import AdminTLS
import BrokerAPI
import FoundationEssentials
import NIOCore
import PlainText
import RequestText
import Testing

@testable import AdminAPI

@Suite("Small values of the admin plane")
struct ValueTests {
    @Test(
        "percent-encoding is undone",
        arguments: [
            ("", ""), ("a-b", "a-b"), ("%41%2f%2F", "A//"), ("a+b", "a+b"), ("%E2%82%AC", "€"),
        ])
    func percentDecoding(text: String, decoded: String) {
        #expect(percentDecoded(text[...]) == decoded)
    }

    @Test("a query is decoded, and a plus in it, which could be a space, refused")
    func plus() throws {
        #expect(try QueryItems("a=1%2B2%20&&b", known: ["a", "b"])["a"] == "1+2 ")
        #expect(try QueryItems("a=1%2B2%20&&b", known: ["a", "b"])["b"] == "")
        for query in ["a=1+2", "a+=1", "+"] {
            let problem = #expect(throws: Problem.self) { try QueryItems(query[...], known: ["a"]) }
            #expect(problem?.fix.contains("%20") == true)
        }
        #expect(try QueryItems("a=b=c", known: ["a"])["a"] == "b=c")
    }

    @Test("a query is split at its bytes, whatever characters they are part of")
    func combiningCharacters() throws {
        let query = "a=1&\u{301}b=2&c=\u{301}3"
        let items = try QueryItems(query[...], known: ["a", "\u{301}b", "c"])
        #expect(items["a"] == "1")
        #expect(items["\u{301}b"] == "2")
        #expect(items["c"] == "\u{301}3")
    }

    @Test(
        "templates put identifiers into their places",
        arguments: [
            ("orders/{sales_id}/{order_id}/status", "orders/S/O/status"),
            ("{order_id}/{sales_id}", "O/S"), ("a//{sales_id}/{order_id}/", "a//S/O/"),
        ])
    func templates(text: String, name: String) throws {
        let template = try TopicTemplate(text, places: ["sales_id", "order_id"])
        #expect(template.filled(["sales_id": "S", "order_id": "O"]) == name)
    }

    @Test(
        "a template that cannot name topics is refused",
        arguments: [
            "", "orders/{sales_id}", "orders/{sales_id}/{orderid}", "orders/x{sales_id}/{order_id}",
            "orders/+/{sales_id}/{order_id}", "{sales_id}/{order_id}/#",
            "$SYS/{sales_id}/{order_id}",
            "{sales_id}/{order_id}/{other}", "{sales_id}/{order_id", "a\0/{sales_id}/{order_id}",
        ])
    func wrongTemplates(text: String) throws {
        let error = #expect(throws: TopicTemplateError.self) {
            try TopicTemplate(text, places: ["sales_id", "order_id"])
        }
        #expect(error?.template == text)

        var configuration = AdminServerConfiguration(
            token: try AdminToken(TestServer.token, source: "test"), durability: "none",
            version: "1")
        configuration.orderTopicTemplate = text
        #expect(throws: AdminServerError.self) {
            try AdminServer(
                configuration: configuration, broker: StubBroker(), logger: .init(label: "test"))
        }
    }

    @Test("message names are UUIDs of version 7, in the order of time")
    func messageNames() {
        var generator = SplitMix(state: 7)
        let early = MessageID.make(unixMilliseconds: 0x0123_4567_89AB, using: &generator)
        let late = MessageID.make(unixMilliseconds: 0x0123_4567_89AC, using: &generator)
        guard case .made(let first) = early, case .made(let second) = late else {
            Issue.record("no identifier was made")
            return
        }
        #expect(first < second && early.text < late.text)
        for name in [early.text, late.text] {
            let characters = Array(name)
            #expect(characters.count == 36)
            #expect(characters[14] == "7")
            #expect("89ab".contains(characters[19]))
            #expect([8, 13, 18, 23].allSatisfy { characters[$0] == "-" })
            #expect(MessageID.isValid(name))
        }
        #expect(early.text.hasPrefix("01234567-89ab-7"))
    }

    @Test("no two messages get the same name, also of the same millisecond")
    func differentNames() {
        let ids = MessageIDs()
        let names = (1...1_000).map { _ in ids.make(unixMilliseconds: 1).text }
        #expect(Set(names).count == 1_000)
    }

    @Test(
        "the answer to a publish equals JSONEncoder's output",
        arguments: ["01a1fc8a-b5fb-70b5-821e-8b8b8cb417c3", "\"", "a\\b\"c/", "~!"])
    func publishResult(messageID: String) throws {
        for duplicate in [true, false] {
            let result = PublishResult(
                messageID: messageID, durability: "sync",
                counts: PublishCounts(matched: 1, online: 22, queued: 333, dropped: 4_444),
                duplicate: duplicate)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            #expect(
                Data(PublishResult.document(result).readableBytesView)
                    == (try encoder.encode(result)) + Data("\n".utf8))
        }
    }

    @Test("words of headers are compared whatever the case of their letters")
    func words() {
        for word in ["bearer", "Bearer", "BEARER", "beaRER"] { #expect(word.utf8.isWord("bearer")) }
        for word in ["", "beare", "bearers", "bear\u{45}r ", "[earer"] {
            #expect(!word.utf8.isWord("bearer"))
        }
        // 0x20 apart from other characters than letters.
        #expect(!"\u{1B}".utf8.isWord(";"))
        #expect(!"@".utf8.isWord("`"))
    }

    @Test(
        "dates are those of RFC 9110",
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        ])
    func dates(seconds: Int, text: String) {
        #expect(HTTPDate.text(unixSeconds: seconds) == text)
    }

    @Test(
        "BoringSSL's reason is found in its text",
        arguments: [
            (
                "Error: 268435703 error:100000f7:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER "
                    + "at /a/tls_record.cc:128", "wrong_version_number"
            ),
            (
                "OPENSSL_internal:" + String(repeating: "X", count: 99),
                String(repeating: "x", count: 64)
            ),
            ("EOF during handshake", nil), ("", nil),
        ] as [(String, String?)])
    func boringSSLReason(text: String, reason: String?) {
        #expect(BoringSSLWord.reason(in: text) == reason)
    }

    @Test("long text is cut")
    func visibleCut() {
        #expect(
            String(repeating: "a", count: 129).visible()
                == String(repeating: "a", count: 128) + "…"
        )
        #expect(String(repeating: "a", count: 128).visible() == String(repeating: "a", count: 128))
        #expect("abc".visible(limit: 2) == "ab…")
    }

    @Test("every kind of problem has a type and a title of its own")
    func problemKinds() {
        #expect(Set(Problem.Kind.allCases.map(\.title)).count == Problem.Kind.allCases.count)
        for kind in Problem.Kind.allCases {
            #expect((400...507).contains(kind.status.code))
        }
    }
}
