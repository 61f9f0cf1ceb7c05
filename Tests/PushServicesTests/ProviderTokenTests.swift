import COpenSSL
import Glibc
import SystemFiles
import Testing

@testable import PushServices

@Suite("Provider tokens")
struct ProviderTokenTests {
    private static let folder: String = {
        let path = "/tmp/hermes-apns-\(getpid())"
        mkdir(path, 0o700)
        return path
    }()

    /// A new key in a file.
    private func keyFile(_ name: String, mode: mode_t = 0o600) throws -> String {
        let key = try #require(EVP_PKEY_Q_keygen_p256())
        defer { EVP_PKEY_free(key) }
        let path = "\(Self.folder)/\(name)"
        let file = try #require(fopen(path, "w"))
        #expect(PEM_write_PrivateKey(file, key, nil, nil, 0, nil, nil) == 1)
        fclose(file)
        chmod(path, mode)
        return path
    }

    /// `EVP_EC_gen` is a macro over a function with any number of arguments.
    private func EVP_PKEY_Q_keygen_p256() -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &key) == 1
        else { return nil }
        return key
    }

    @Test("a key that others may read, no key, and another kind of key are refused with a cure")
    func refused() throws {
        let open = try keyFile("open.p8", mode: 0o644)
        let error = #expect(throws: ProviderKey.Unusable.self) {
            _ = try ProviderKey.load(path: open)
        }
        #expect(error?.description.contains("chmod 600") == true)
        let nothing = "\(Self.folder)/nothing.p8"
        try FileChange.replace(nothing, with: Array("hello".utf8))
        let second = #expect(throws: ProviderKey.Unusable.self) {
            _ = try ProviderKey.load(path: nothing)
        }
        #expect(second?.description.contains("holds no private key") == true)
    }

    @Test("one is used for 50 minutes, over restarts, and never renewed within 20")
    func renewal() throws {
        let key = try ProviderKey.load(path: try keyFile("renewal.p8"))
        let file = "\(Self.folder)/renewal.token"
        func tokens(_ now: Int64, team: String = "TEAM000001") -> ProviderTokens {
            ProviderTokens(key: key, keyID: "KEY0000001", teamID: team, file: file, now: now)
        }
        var first = tokens(10_000)
        let made = first.current(now: 10_000)
        let token = try #require(made)
        #expect(token.split(separator: ".").count == 3)
        var restarted = tokens(12_000)
        let same = restarted.current(now: 12_999)
        // Apple says that it is too old, and it is too young to be renewed.
        let isRenewed = restarted.expired(10_000, now: 10_000 + 1_199)
        #expect(same == token && !isRenewed)
        var old = tokens(10_000 + 3_000)
        let renewed = old.current(now: 13_000)
        #expect(renewed != nil && renewed != token)
        var otherTeam = tokens(13_001, team: "TEAM000002")
        let ofOtherTeam = otherTeam.current(now: 13_001)
        #expect(ofOtherTeam != nil && ofOtherTeam != renewed)
        var future = tokens(1)
        let early = future.current(now: 1)
        #expect(early != nil && early != ofOtherTeam)
        let status = try #require(FileStatus(of: file))
        #expect(status.mode & 0o777 == 0o600)
    }

    @Test("another key gets a token of its own at once, unless the last one is good and young")
    func changedKey() throws {
        let path = try keyFile("changed.p8")
        func tokens(_ name: String) throws -> ProviderTokens {
            ProviderTokens(
                key: try ProviderKey.load(path: path), keyID: "K", teamID: "T",
                file: "\(Self.folder)/\(name).token", now: 5)
        }
        let other = try ProviderKey.load(path: try keyFile("other.p8"))
        // Apple has not taken it: there is nothing to lose.
        var unproven = try tokens("unproven")
        let first = unproven.current(now: 5)
        unproven.use(try ProviderKey.load(path: path))
        let taken1 = unproven.current(now: 6)
        #expect(taken1 == first)
        unproven.use(other)
        let second = unproven.current(now: 7)
        #expect(second != nil && second != first)
        // A good one goes on until a new one is allowed.
        var good = try tokens("good")
        let third = good.current(now: 5)
        good.accepted(5)
        good.use(other)
        let taken2 = good.current(now: 6)
        #expect(taken2 == third)
        let taken3 = good.current(now: 5 + 1_199)
        #expect(taken3 == third)
        let fourth = good.current(now: 5 + 1_200)
        #expect(fourth != nil && fourth != third)
        // So it does not when Apple refuses it, because the old key was revoked.
        var revoked = try tokens("revoked")
        let fifth = revoked.current(now: 5)
        revoked.accepted(5)
        revoked.use(other)
        let isMended = revoked.refused(5, now: 8)
        #expect(isMended)
        let sixth = revoked.current(now: 8)
        #expect(sixth != nil && sixth != fifth)
        // What was sent with the old one is not held against the new one.
        let isLate = revoked.refused(5, now: 9)
        #expect(isLate)
        let isOwn = revoked.refused(8, now: 9)
        #expect(!isOwn)
    }

    @Test("when Apple has had too many tokens, the one before goes on, also after a restart")
    func tooMany() throws {
        let path = try keyFile("many.p8")
        let file = "\(Self.folder)/many.token"
        func tokens(_ now: Int64) throws -> ProviderTokens {
            ProviderTokens(
                key: try ProviderKey.load(path: path), keyID: "K", teamID: "T", file: file,
                now: now)
        }
        var first = try tokens(10_000)
        let token = first.current(now: 10_000)
        first.accepted(10_000)
        let renewed = first.current(now: 13_000)
        #expect(renewed != token)
        let goesOn = first.tooMany(13_000, now: 13_001)
        #expect(goesOn)
        let taken4 = first.current(now: 13_002)
        #expect(taken4 == token)
        var restarted = try tokens(12_999)
        let taken5 = restarted.current(now: 12_999)
        #expect(taken5 == token)
        // Before Apple takes it no more, a new one is tried.
        let last = first.current(now: 10_000 + 59 * 60)
        #expect(last != nil && last != token)
        // Without one before there is nothing to go on with.
        var alone = ProviderTokens(
            key: try ProviderKey.load(path: path), keyID: "K", teamID: "T",
            file: "\(Self.folder)/alone.token", now: 5)
        let only = alone.current(now: 5)
        let hasOther = alone.tooMany(5, now: 6)
        #expect(!hasOther)
        let taken6 = alone.current(now: 7)
        #expect(taken6 == only)
    }
}
