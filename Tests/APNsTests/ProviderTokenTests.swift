import COpenSSL
import Glibc
import SystemFiles
import Testing

@testable import APNs

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
        let isRenewed = restarted.renew(now: 10_000 + 1_199)
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

    @Test("another key needs another token at once; the same one does not")
    func changedKey() throws {
        let path = try keyFile("changed.p8")
        let key = try ProviderKey.load(path: path)
        var tokens = ProviderTokens(
            key: key, keyID: "K", teamID: "T", file: "\(Self.folder)/changed.token", now: 5)
        let token = tokens.current(now: 5)
        tokens.use(try ProviderKey.load(path: path))
        let same = tokens.current(now: 6)
        #expect(same == token)
        tokens.use(try ProviderKey.load(path: try keyFile("changed.p8")))
        let other = tokens.current(now: 7)
        #expect(other != nil && other != token)
    }
}
