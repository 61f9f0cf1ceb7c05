import Glibc
import HermesTesting
import Testing

@testable import Credentials

@Suite("A secret that signs")
struct SigningSecretTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    /// The signatures of `openssl dgst -sha256 -hmac` and Python's hmac.
    @Test(
        "signatures are those of HMAC-SHA-256, also with a key that is longer than a block",
        arguments: [
            (
                secret, "1700000000.{\"delivery\":\"d\",\"events\":[]}",
                "e53a5605c126ec89ee69c4cfeac7533a88df3fe12139b6d5ddee216b86aaafa8"
            ),
            (
                String(repeating: "x", count: 200), "",
                "0491b74ec6ce094e16f149a480a6ff0892338ed3fdfef5c00f0087f8bf2db484"
            ),
        ])
    func vectors(secret: String, message: String, signature: String) {
        #expect(SigningSecret(secret.utf8).signature(of: Array(message.utf8)) == signature)
    }

    @Test("the file's line is the secret", arguments: ["", "\n", "\r\n"])
    func line(end: String) throws {
        let folder = try TemporaryFolder()
        let read = try SigningSecret.load(path: folder.write(Self.secret + end, to: "secret"))
        #expect(read.signature(of: []) == SigningSecret(Self.secret.utf8).signature(of: []))
    }

    @Test(
        "a file without a secret is refused",
        arguments: [
            "", "\n", "0123456789abcde", "0123456789abcdef 0123", "0123456789abcdef\n\n",
            "0123456789abcdef\nfedcba9876543210\n", "0123456789abcdeö",
            String(repeating: "x", count: 1_025),
        ])
    func malformed(text: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(text, to: "secret")
        let error = #expect(throws: SigningSecret.Unusable.self) {
            try SigningSecret.load(path: path)
        }
        #expect(error?.description.contains("openssl rand -hex 32") == true)
    }

    @Test(
        "a file that others may read, or the group change, is refused",
        arguments: [0o604, 0o620, 0o644, 0o777])
    func open(mode: mode_t) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.secret, to: "secret", mode: mode)
        let error = #expect(throws: SigningSecret.Unusable.self) {
            try SigningSecret.load(path: path)
        }
        #expect(error?.description.contains("chmod 600") == true)
    }

    @Test("its group may read the file", arguments: [0o400, 0o440, 0o600, 0o640])
    func guarded(mode: mode_t) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.secret, to: "secret", mode: mode)
        _ = try SigningSecret.load(path: path)
    }

    @Test("a missing file is named")
    func missing() {
        let error = #expect(throws: SigningSecret.Unusable.self) {
            try SigningSecret.load(path: "/nonexistent/secret")
        }
        #expect(error?.description.contains("/nonexistent/secret") == true)
        #expect(error?.isTransient == false)
    }
}
