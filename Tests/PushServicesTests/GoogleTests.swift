import BrokerAPI
import COpenSSL
import Glibc
import PlainText
import RequestText
import SystemFiles
import Testing

@testable import PushServices

@Suite("Answers of Firebase Cloud Messaging")
struct GoogleAnswerTests {
    private static func answer(
        _ status: Int, _ general: String, _ code: String = "", field: String = ""
    ) -> GoogleAnswer {
        let violation =
            #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"\#(field)"}]}"#
        let own =
            #"{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#(code)"}"#
        let details = [code.isEmpty ? nil : own, field.isEmpty ? nil : violation].compactMap { $0 }
        let text =
            #"{"error":{"code":\#(status),"message":"m","status":"\#(general)","details":[\#(details.joined(separator: ","))]}}"#
        return GoogleAnswer(status: status, body: Array(text.utf8))
    }

    @Test("each code has its meaning, and the general one stands in for none")
    func meanings() {
        let cases: [(GoogleAnswer, AnswerMeaning, String)] = [
            (GoogleAnswer(status: 200, body: []), .accepted, ""),
            (Self.answer(404, "NOT_FOUND", "UNREGISTERED"), .gone(atMs: nil), "UNREGISTERED"),
            (Self.answer(404, "NOT_FOUND"), .credentials, "NOT_FOUND"),
            (
                Self.answer(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"), .unknownDevice,
                "INVALID_ARGUMENT"
            ),
            (
                Self.answer(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", field: "message.token"),
                .unknownDevice, "INVALID_ARGUMENT"
            ),
            (
                Self.answer(400, "INVALID_ARGUMENT", field: "message.android.ttl"), .refused,
                "INVALID_ARGUMENT"
            ),
            (
                Self.answer(403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"), .unfitKey,
                "SENDER_ID_MISMATCH"
            ),
            (Self.answer(403, "PERMISSION_DENIED"), .credentials, "PERMISSION_DENIED"),
            (
                Self.answer(401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"), .topic,
                "THIRD_PARTY_AUTH_ERROR"
            ),
            (Self.answer(401, "UNAUTHENTICATED"), .expiredToken, "UNAUTHENTICATED"),
            (
                Self.answer(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"), .busyService,
                "QUOTA_EXCEEDED"
            ),
            (Self.answer(500, "INTERNAL", "INTERNAL"), .service, "INTERNAL"),
            (Self.answer(503, "UNAVAILABLE", "UNAVAILABLE"), .service, "UNAVAILABLE"),
            (GoogleAnswer(status: 502, body: Array("<html>".utf8)), .service, "status 502"),
            (Self.answer(500, "no code", "\u{1B}[31m"), .service, "status 500"),
        ]
        for (answer, meaning, word) in cases {
            #expect(answer.meaning == meaning, "\(answer)")
            #expect(answer.word == word)
        }
        // A service that says how long it is overloaded asks for a pause.
        let pause = ProviderAnswer(Self.answer(503, "UNAVAILABLE"), retryAfter: 7_000)
        #expect((pause.meaning, pause.pause) == (.busyService, 7_000))
    }

    @Test(
        "a pause that the service asks for holds for all, grows, and ends with the first that passes"
    )
    func pauses() {
        var health = AppHealth()
        let verdict = health.refused(
            .busy, "QUOTA_EXCEEDED", device: 1, asked: 2_000, at: 1_000)
        #expect(verdict == .later)
        #expect(!health.maySend(open: 0, at: 2_999))
        #expect(health.maySend(open: 0, at: 3_000))
        #expect(!health.maySend(open: 1, at: 3_000))
        _ = health.refused(.busy, "QUOTA_EXCEEDED", device: 1, asked: 2_000, at: 3_000)
        #expect(!health.maySend(open: 0, at: 6_999))
        #expect(health.maySend(open: 0, at: 7_000))
        let trouble = health.trouble(.google, bundle: "a", environment: "production", at: 7_000)
        #expect(trouble?.reason == "Google asks for a pause (QUOTA_EXCEEDED) for a in production")
        health.passed(at: 7_000)
        #expect(health.maySend(open: 5, at: 7_000))
        // Without a time it is a minute; of a time an hour is believed.
        var others = AppHealth()
        _ = others.refused(.busy, "QUOTA_EXCEEDED", device: 1, at: 0)
        #expect(!others.maySend(open: 0, at: 59_999))
        #expect(others.maySend(open: 0, at: 60_000))
        var long = AppHealth()
        _ = long.refused(.busy, "QUOTA_EXCEEDED", device: 1, asked: 80_000_000, at: 0)
        #expect(long.maySend(open: 0, at: 3_600_000))
    }
}

@Suite("Access tokens")
struct AccessTokenTests {
    private static func answer(_ token: String = "t", life: Int = 3_600) -> [UInt8] {
        Array(#"{"access_token":"\#(token)","expires_in":\#(life),"token_type":"Bearer"}"#.utf8)
    }

    @Test("one is used until shortly before its end, and renewed ahead of that")
    func renewal() {
        var tokens = AccessTokens()
        #expect(tokens.isDue(at: 1_000))
        #expect(tokens.current(at: 1_000) == nil)
        tokens.answered(200, Self.answer(), retryAfter: nil, at: 1_000)
        #expect(tokens.current(at: 1_000)?.text == "t")
        #expect(!tokens.isDue(at: 3_300_999))
        #expect(tokens.isDue(at: 3_301_000))
        #expect(tokens.current(at: 3_595_999)?.text == "t")
        #expect(tokens.current(at: 3_596_000) == nil)
        // A renewal that fails does not take the token away.
        tokens.answered(503, [], retryAfter: nil, at: 3_301_000)
        #expect(tokens.failure == "status 503")
        #expect(tokens.current(at: 3_302_000)?.text == "t")
        #expect(!tokens.isDue(at: 3_301_999))
        tokens.answered(200, Self.answer("u"), retryAfter: nil, at: 3_302_000)
        #expect(tokens.current(at: 3_302_000)?.text == "u")
        #expect(tokens.failure == nil)
    }

    @Test("failures are told, and tried again after growing pauses, or the one that is asked for")
    func failures() {
        var tokens = AccessTokens()
        let refusal = Array(
            #"{"error":"invalid_grant","error_description":"Invalid JWT Signature.\u001b[31m"}"#
                .utf8)
        var (now, pauses): (UInt64, [UInt64]) = (0, [])
        for _ in 0..<8 {
            tokens.answered(400, refusal, retryAfter: nil, at: now)
            let from = now
            while !tokens.isDue(at: now) { now += 500 }
            pauses.append((now - from) / 1_000)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60])
        #expect(tokens.failure?.hasPrefix("invalid_grant: Invalid JWT Signature.") == true)
        #expect(tokens.failure?.utf8.contains(0x1B) == false)
        var asked = AccessTokens()
        asked.answered(429, [], retryAfter: 30_000, at: 0)
        #expect(!asked.isDue(at: 29_999))
        #expect(asked.isDue(at: 30_000))
        for body in [
            "", "[]", #"{"access_token":"a b","expires_in":3600}"#, #"{"access_token":"t"}"#,
            #"{"access_token":"t","expires_in":1}"#, #"{"access_token":"","expires_in":3600}"#,
        ] {
            var tokens = AccessTokens()
            tokens.answered(200, Array(body.utf8), retryAfter: nil, at: 0)
            #expect(tokens.current(at: 0) == nil, "\(body)")
            #expect(tokens.failure != nil)
        }
    }

    @Test("a token of an account that was replaced while it was asked for is not used")
    func replaced() {
        var tokens = AccessTokens()
        tokens.asked()
        tokens.reset()
        tokens.answered(200, Self.answer("former"), retryAfter: nil, at: 0)
        #expect(tokens.current(at: 0) == nil)
        tokens.answered(400, [], retryAfter: nil, at: 0)
        tokens.lost(at: 0)
        #expect(tokens.failure == nil)
        #expect(tokens.isDue(at: 0))
        tokens.asked()
        tokens.answered(200, Self.answer("new"), retryAfter: nil, at: 0)
        #expect(tokens.current(at: 0)?.text == "new")
    }

    @Test(
        "a refused token is given up unless it is new, and an old one's refusal concerns no other")
    func refusals() {
        var tokens = AccessTokens()
        tokens.answered(200, Self.answer("t"), retryAfter: nil, at: 0)
        let first = tokens.current(at: 0)?.number ?? 0
        let isMended = [59_999, 60_000].map { tokens.refused(first, at: $0) }
        #expect(isMended == [false, true])
        #expect(tokens.current(at: 60_000) == nil)
        #expect(tokens.isDue(at: 60_000))
        tokens.answered(200, Self.answer("u"), retryAfter: nil, at: 61_000)
        let isOld = tokens.refused(first, at: 61_000)
        #expect(isOld)
        #expect(tokens.current(at: 61_000)?.text == "u")
    }
}

@Suite("Service accounts")
struct ServiceAccountTests {
    private static let folder: String = {
        let path = "/tmp/hermes-fcm-\(getpid())"
        mkdir(path, 0o700)
        return path
    }()

    private static func key(_ kind: String, bits: Int = 2_048) throws -> String {
        let context = try #require(EVP_PKEY_CTX_new_from_name(nil, kind, nil))
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        #expect(EVP_PKEY_keygen_init(context) == 1)
        if kind == "RSA" {
            #expect(EVP_PKEY_CTX_set_rsa_keygen_bits(context, CInt(bits)) == 1)
        } else {
            #expect(EVP_PKEY_CTX_set_group_name(context, "P-256") == 1)
        }
        #expect(EVP_PKEY_generate(context, &key) == 1)
        defer { EVP_PKEY_free(key) }
        let path = "\(folder)/key.pem"
        let file = try #require(fopen(path, "w"))
        #expect(PEM_write_PrivateKey(file, key, nil, nil, 0, nil, nil) == 1)
        fclose(file)
        let bytes = try WholeFile(path, maximumByteCount: 65_536).bytes
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func load(
        _ key: String, _ change: (String, String)? = nil, mode: mode_t = 0o600
    ) throws -> ServiceAccount {
        var members = [
            "type": "service_account", "project_id": "p-1", "private_key_id": "k",
            "private_key": key, "client_email": "h@p-1.example",
            "token_uri": "https://localhost:2198/token",
        ]
        if let change { members[change.0] = change.1 }
        var json = JSONBytes()
        json.object(members.map { ($0.key, .string(ForeignText($0.value))) })
        let path = "\(folder)/account.json"
        try FileChange.replace(path, with: json.bytes)
        chmod(path, mode)
        return try ServiceAccount.load(path: path)
    }

    @Test("an account is read, and signs an assertion for its token service")
    func assertion() throws {
        let account = try Self.load(try Self.key("RSA"))
        #expect(account.projectID == "p-1")
        #expect(account.tokenHost == ServiceEndpoint(host: "localhost", port: 2_198))
        #expect(account.tokenPath == "/token")
        let body = String(decoding: try #require(account.tokenRequest(at: 1_000)), as: UTF8.self)
        let prefix = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
        #expect(body.hasPrefix(prefix))
        let parts = body.dropFirst(prefix.count).split(separator: ".")
        #expect(parts.count == 3)
        #expect(
            String(parts[0])
                == Base64.urlText(of: Array(#"{"alg":"RS256","typ":"JWT","kid":"k"}"#.utf8)))
        let claims =
            #"{"iss":"h@p-1.example","scope":"https://www.googleapis.com/auth/firebase.messaging","aud":"https://localhost:2198/token","iat":1000,"exp":4600}"#
        #expect(String(parts[1]) == Base64.urlText(of: Array(claims.utf8)))
        #expect(account.equals(account))
    }

    @Test("what cannot be used is refused by its name, with a cure")
    func refused() throws {
        let key = try Self.key("RSA")
        let changes: [((String, String)?, String)] = [
            (("type", "authorized_user"), "service_account"), (("project_id", "a/b"), "project"),
            (("client_email", ""), "client_email"), (("token_uri", "http://a/b"), "token_uri"),
            (("token_uri", "https://u@a/b"), "token_uri"),
            (("token_uri", "https://a:0/"), "token_uri"),
            (("token_uri", "https:///b"), "token_uri"),
            (("token_uri", "https://a/b?c"), "token_uri"),
            (("private_key", "none"), "RSA key"), (("private_key", try Self.key("EC")), "RSA key"),
            (("private_key", try Self.key("RSA", bits: 1_024)), "RSA key"),
        ]
        for (change, word) in changes {
            let error = #expect(throws: ProviderKey.Unusable.self) {
                _ = try Self.load(key, change)
            }
            #expect(error?.description.contains(word) == true, "\(String(describing: error))")
            #expect(error?.description.contains("BEGIN") == false)
        }
        let open = #expect(throws: ProviderKey.Unusable.self) {
            _ = try Self.load(key, mode: 0o644)
        }
        #expect(open?.description.contains("chmod 600") == true)
        #expect(try Self.load(key, ("token_uri", "https://a")).tokenPath == "/")
    }
}
