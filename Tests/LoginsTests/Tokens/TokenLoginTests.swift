import Testing

@testable import Logins

@Suite("Remembered tokens")
struct TokenLoginTests {
    private func token(_ user: String, exp: Int64 = 2_000) -> [UInt8] {
        Issuer.hs256.token(#"{"sub":"\#(user)","exp":\#(exp)}"#)
    }

    @Test("a verified token is recalled until it ends, and no other one")
    func recall() throws {
        let logins = TokenLogins(try TokenVerifier(.hs256))
        let token = token("anna")
        #expect(logins.recall(token, now: 1_000) == nil)
        _ = try logins.verify(token, now: 1_000)
        #expect(logins.recall(token, now: 2_029)?.userName == "anna")
        #expect(logins.recall(token + [0x41], now: 1_000) == nil)
        #expect(logins.recall(token, now: 2_030) == nil)
        #expect(logins.rememberedCount == 0)
        #expect(throws: TokenRefusal.expired(at: 2_000)) { try logins.verify(token, now: 2_030) }
    }

    @Test("a refused token is not remembered")
    func refused() throws {
        let logins = TokenLogins(try TokenVerifier(.hs256))
        let other = Issuer.es256.token()
        #expect(throws: TokenRefusal.self) { try logins.verify(other, now: Issuer.now) }
        #expect(logins.rememberedCount == 0)
        #expect(logins.recall(other, now: Issuer.now) == nil)
    }

    @Test("other keys, and another policy, forget everything; the same ones nothing")
    func change() throws {
        let verifier = try TokenVerifier(.hs256)
        let logins = TokenLogins(verifier)
        let token = token("anna")
        _ = try logins.verify(token, now: 1_000)
        #expect(!logins.use(try TokenVerifier(.hs256)))
        #expect(logins.recall(token, now: 1_000) != nil)
        #expect(logins.use(try TokenVerifier(.hs256, TokenPolicy(audiences: ["hermes"]))))
        #expect(logins.recall(token, now: 1_000) == nil)
        #expect(throws: TokenRefusal.self) { try logins.verify(token, now: 1_000) }
        logins.use(try TokenVerifier(.es256))
        #expect(throws: TokenRefusal.self) { try logins.verify(token, now: 1_000) }
    }

    @Test("the memory is bounded, and what is used stays longest")
    func bounded() throws {
        let logins = TokenLogins(try TokenVerifier(.hs256), rememberedBytes: 40_000)
        let first = token("user-0")
        _ = try logins.verify(first, now: 1_000)
        for number in 1...1_000 {
            _ = try logins.verify(token("user-\(number)"), now: 1_000)
            #expect(logins.recall(first, now: 1_000) != nil)
        }
        #expect((50...200).contains(logins.rememberedCount), "\(logins.rememberedCount)")
    }

    @Test("clients with the same lists share one allowance")
    func shares() throws {
        let logins = TokenLogins(try TokenVerifier(.hs256))
        func login(_ user: String, _ filter: String) throws -> TokenLogin {
            try logins.verify(
                Issuer.hs256.token(
                    #"{"sub":"\#(user)","exp":2000,"subscribe":["\#(filter)"]}"#), now: 1_000)
        }
        let (anna, bert) = (try login("anna", "o/%u/#"), try login("bert", "o/%u/#"))
        #expect(anna.allowance != nil)
        #expect(anna.allowance === bert.allowance)
        #expect(try login("cleo", "o/%c/#").allowance !== bert.allowance)
    }
}
