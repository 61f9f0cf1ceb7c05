import RequestText
import Testing

@testable import Logins

@Suite("Questions and answers of a login service")
struct ServiceAnswerTests {
    private func read(_ text: String) throws(MalformedAnswer) -> ReceivedAnswer {
        try ReceivedAnswer(Array(text.utf8))
    }

    // MARK: Questions

    @Test("a question is JSON whatever its names and password are")
    func body() throws {
        let question = LoginQuestion(
            userName: Array("an\"na\\\n\u{1}\u{7F}é".utf8), clientID: Array("{\"".utf8),
            password: Array("se\"cret\0".utf8), address: "192.0.2.7")
        guard case .object(let members) = try JSONParser.parse(question.body) else {
            Issue.record("no object")
            return
        }
        #expect(
            members == [
                JSONMember(name: "user_name", value: .string("an\"na\\\n\u{1}\u{7F}é")),
                JSONMember(name: "client_id", value: .string("{\"")),
                JSONMember(name: "password", value: .string("se\"cret\0")),
                JSONMember(name: "address", value: .string("192.0.2.7")),
            ])
        #expect(!question.body.contains { $0 < 0x20 })
    }

    @Test(
        "a password that is no UTF-8 comes in base 64",
        arguments: [([0xFF], "/w=="), ([0xFF, 0], "/wA="), ([0xFF, 0xFE, 1], "//4B")]
            as [([UInt8], String)])
    func binary(password: [UInt8], text: String) {
        let question = LoginQuestion(
            userName: [], clientID: [], password: password, address: "")
        #expect(
            String(decoding: question.body, as: UTF8.self)
                .contains("\"password_base64\":\"\(text)\""))
    }

    @Test("questions that differ in where one part ends have different digests")
    func digests() {
        func digest(_ user: String, _ client: String, _ password: String, _ address: String)
            -> String
        {
            LoginQuestion(
                userName: Array(user.utf8), clientID: Array(client.utf8),
                password: Array(password.utf8), address: address
            ).digest([1, 2, 3]).hexadecimal
        }
        let all = [
            digest("a", "b", "c", "d"), digest("ab", "", "c", "d"), digest("a", "bc", "", "d"),
            digest("a", "b", "cd", ""), digest("a", "b", "c", "e"), digest("", "ab", "c", "d"),
        ]
        #expect(Set(all).count == all.count)
    }

    @Test("questions name the certificate's user, and differ by it")
    func certificateName() {
        var question = LoginQuestion(
            userName: Array("a".utf8), clientID: Array("c".utf8), password: [],
            address: "::1")
        let digest = question.digest([1])
        #expect(
            String(decoding: question.body, as: UTF8.self)
                == #"{"user_name":"a","client_id":"c","password":"","address":"::1"}"#)
        var digests = [digest]
        for name in ["", "device \"7\""] {
            question.certificateName = Array(name.utf8)
            #expect(!digests.contains(question.digest([1])))
            digests.append(question.digest([1]))
        }
        #expect(
            String(decoding: question.body, as: UTF8.self)
                == #"{"user_name":"a","client_id":"c","password":"","#
                + #""certificate_name":"device \"7\"","address":"::1"}"#)
    }

    // MARK: Answers

    @Test("an answer that lets in, with all that it may say")
    func allow() throws {
        let received = try read(
            """
            {"result":"allow","user_name":"anna","superuser":true,"publish":["up/%u"],
             "subscribe":["orders/%u/#"],"remember_s":60.5,"expires_at":4000000000,"other":[1]}
            """)
        guard case .allowed(let login) = received.answer else {
            Issue.record("\(received)")
            return
        }
        #expect(login.userName == "anna")
        #expect(login.isSuperuser)
        #expect(login.narrows)
        #expect(login.expiresAt == 4_000_000_000)
        #expect(received.remember == .seconds(60))
    }

    @Test("the least that an answer says")
    func least() throws {
        guard case .allowed(let login) = try read(#"{"result":"allow"}"#).answer else {
            Issue.record("not allowed")
            return
        }
        #expect(login.allowance == nil)
        #expect(!login.isSuperuser)
        guard
            case .denied(reason: "blocked ")? =
                try? read(#"{"result":"deny","reason":"blocked\u202E"}"#).answer
        else {
            Issue.record("not denied with a plain reason")
            return
        }
        guard case .ignored = try read(#" {"result":"ignore"} "#).answer else {
            Issue.record("not ignored")
            return
        }
    }

    @Test("a member that is null is absent")
    func null() throws {
        let received = try read(
            """
            {"result":"allow","remember_s":null,"superuser":null,"publish":null,"subscribe":null,
             "user_name":null,"expires_at":null,"reason":null}
            """)
        #expect(received.remember == nil)
        guard case .allowed(let login) = received.answer else {
            Issue.record("not allowed")
            return
        }
        #expect(login.userName == nil && login.allowance == nil && login.expiresAt == nil)
    }

    @Test(
        "what is no answer lets nobody in",
        arguments: [
            "", "allow", "true", "[]", "\"allow\"", "{}", #"{"result":true}"#,
            #"{"result":"ALLOW"}"#, #"{"result":"allow","result":"allow"}"#,
            #"{"result":"deny","r\u0065sult":"allow"}"#, #"{"result":"allow"}x"#,
            #"{"result":"allow","superuser":"true"}"#, #"{"result":"allow","superuser":1}"#,
            #"{"result":null}"#, #"{"result":"allow","remember_s":"60"}"#,
            #"{"result":"allow","remember_s":-1}"#, #"{"result":"allow","remember_s":1e999}"#,
            #"{"result":"allow","publish":"a/#"}"#, #"{"result":"allow","publish":[1]}"#,
            #"{"result":"allow","subscribe":["a/#/b"]}"#, #"{"result":"allow","subscribe":{}}"#,
            #"{"result":"allow","user_name":""}"#, #"{"result":"allow","user_name":"a\u0000b"}"#,
            #"{"result":"allow","user_name":7}"#, #"{"result":"allow","expires_at":"never"}"#,
            #"{"result":"deny","publish":[1]}"#, #"{"result":"deny","reason":7}"#,
            "\u{FEFF}{\"result\":\"allow\"}", "{\"result\":\"allow\"",
            String(repeating: "[", count: 100),
        ])
    func malformed(text: String) {
        #expect(throws: MalformedAnswer.self) { try read(text) }
    }

    @Test("an allowance of very many filters is none")
    func many() {
        let filters = (0...100).map { "\"t/\($0)\"" }.joined(separator: ",")
        #expect(throws: MalformedAnswer.self) {
            try read("{\"result\":\"allow\",\"publish\":[\(filters)]}")
        }
    }
}
