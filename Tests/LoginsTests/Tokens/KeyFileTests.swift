import Glibc
import HermesTesting
import Testing

@testable import Logins

@Suite("Files with keys")
struct KeyFileTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func write(_ bytes: [UInt8], mode: mode_t = 0o600) throws -> String {
        let path = try folder.write(String(decoding: bytes, as: UTF8.self), to: "key")
        chmod(path, mode)
        return path
    }

    private func complaint(_ file: KeyFile) -> String {
        do throws(KeyFile.Unusable) {
            _ = try file.load()
            return ""
        } catch {
            return error.description
        }
    }

    @Test("a PEM file of each public key", arguments: [Issuer.rs256, .es256, .edDSA])
    func publicKey(_ issuer: Issuer) throws {
        let keys = try KeyFile.publicKey(try write(issuer.pem, mode: 0o644)).load()
        #expect(keys.keys.map(\.algorithm) == [issuer.algorithm])
        let verifier = TokenVerifier(keys: keys, policy: TokenPolicy())
        #expect(verifier.refusal(issuer.token()) == nil)
    }

    @Test("a secret, with and without a line's end")
    func secret() throws {
        for end in ["", "\n", "\r\n"] {
            let keys = try KeyFile.secret(try write(Issuer.hs256.pem + Array(end.utf8))).load()
            let verifier = TokenVerifier(keys: keys, policy: TokenPolicy())
            #expect(verifier.refusal(Issuer.hs256.token()) == nil)
        }
    }

    @Test("a set of keys; with a secret in it only if nobody else reads it")
    func keySet() throws {
        let open = KeySetTests.document(KeySetTests.json(.es256))
        #expect(try KeyFile.keySet(try write(open, mode: 0o644)).load().keys.count == 1)
        let secret = KeySetTests.document(KeySetTests.json(.hs256))
        #expect(try KeyFile.keySet(try write(secret)).load().keys.count == 1)
        #expect(complaint(.keySet(try write(secret, mode: 0o644))).contains("chmod 600"))
    }

    @Test("a secret that others read is refused with the cure")
    func secretForOthers() throws {
        let path = try write(Issuer.hs256.pem, mode: 0o644)
        #expect(complaint(.secret(path)).contains("chmod 600 '\(path)'"))
    }

    @Test("keys that others write are refused with the cure", arguments: [mode_t(0o620), 0o602])
    func writable(_ mode: mode_t) throws {
        let path = try write(Issuer.es256.pem, mode: mode)
        #expect(complaint(.publicKey(path)).contains("chmod go-w '\(path)'"))
    }

    @Test("what is no key is refused with the cure")
    func noKey() throws {
        #expect(complaint(.publicKey(try write([]))).contains("BEGIN PUBLIC KEY"))
        #expect(complaint(.publicKey(folder.file("none"))).contains("there is no file"))
        let privateKey = Array("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----".utf8)
        #expect(complaint(.publicKey(try write(privateKey))).contains("-pubout"))
        let short = Issuer.unfit("RSA", bits: 1_024)
        #expect(complaint(.publicKey(try write(short.pem))).contains("1024 bits"))
        let curve = Issuer.unfit("EC", group: "P-384")
        #expect(complaint(.publicKey(try write(curve.pem))).contains("P-256"))
        #expect(complaint(.secret(try write(Array("short".utf8)))).contains("openssl rand"))
        #expect(complaint(.secret(try write(Issuer.es256.pem))).contains("openssl rand"))
        #expect(complaint(.keySet(try write(Array("{}".utf8)))).contains("RFC 7517"))
    }
}
