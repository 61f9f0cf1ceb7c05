import Credentials
import Testing

@Suite("PasswordHash")
struct PasswordHashTests {
    @Test("new hashes carry the standard parameters and a salt of their own")
    func standard() throws {
        let first = try PasswordHash(hashing: SecretBytes(copying: Array("secret".utf8)))
        let second = try PasswordHash(hashing: SecretBytes(copying: Array("secret".utf8)))
        #expect(first.encoded.hasPrefix("$argon2id$v=19$m=19456,t=2,p=1$"))
        #expect(first.encoded != second.encoded)
        #expect(first.parameters == .standard)
        #expect(first.matches("secret"))
        #expect(!first.matches("Secret"))
    }

    @Test("a formatted hash can be parsed, and verifies the same password only")
    func roundTrip() throws {
        let hash = try PasswordHash(parsing: Array(cheapHash("p\u{0}w").encoded.utf8))
        #expect(hash.matches("p\u{0}w"))
        #expect(!hash.matches("p"))
        #expect(!hash.matches("p\u{0}"))
        #expect(!hash.matches(""))
    }

    // From the reference program: printf password | argon2 somesalt -id -t 2 -k 256 -e
    @Test("verifies a hash that the reference program made")
    func reference() throws {
        let text = """
            $argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$\
            nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4
            """
        let hash = try PasswordHash(parsing: Array(text.utf8))
        #expect(hash.matches("password"))
        #expect(!hash.matches("differentpassword"))
    }

    private static let salt = "c29tZXNhbHQ"
    private static let hash = "nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"

    @Test(
        "refuses every other text",
        arguments: [
            ("", PasswordHashSyntaxError.notArgon2id),
            ("hunter2", .notArgon2id),
            ("$6$salt$hash", .notArgon2id),
            ("$7$101$salt$hash", .notArgon2id),
            ("$argon2i$v=19$m=256,t=2,p=1$\(salt)$\(hash)", .notArgon2id),
            ("x$argon2id$v=19$m=256,t=2,p=1$\(salt)$\(hash)", .notArgon2id),
            ("$argon2id$v=19$m=256,t=2,p=1$\(salt)", .fieldCount),
            ("$argon2id$v=19$m=256,t=2,p=1$\(salt)$\(hash)$", .fieldCount),
            ("$argon2id$v=16$m=256,t=2,p=1$\(salt)$\(hash)", .version),
            ("$argon2id$m=256,t=2,p=1$\(salt)$\(hash)$", .version),
            ("$argon2id$v=19$m=256,t=2$\(salt)$\(hash)", .parameterSyntax),
            ("$argon2id$v=19$t=2,m=256,p=1$\(salt)$\(hash)", .parameterSyntax),
            ("$argon2id$v=19$m=0256,t=2,p=1$\(salt)$\(hash)", .parameterSyntax),
            ("$argon2id$v=19$m=+256,t=2,p=1$\(salt)$\(hash)", .parameterSyntax),
            ("$argon2id$v=19$m=-256,t=2,p=1$\(salt)$\(hash)", .parameterSyntax),
            ("$argon2id$v=19$m=4294967296,t=2,p=1$\(salt)$\(hash)", .parameterSyntax),
            ("$argon2id$v=19$m=4194304,t=1,p=1$\(salt)$\(hash)", .parameterRange),
            ("$argon2id$v=19$m=262145,t=1,p=1$\(salt)$\(hash)", .parameterRange),
            ("$argon2id$v=19$m=262144,t=5,p=1$\(salt)$\(hash)", .parameterRange),
            ("$argon2id$v=19$m=256,t=65,p=1$\(salt)$\(hash)", .parameterRange),
            ("$argon2id$v=19$m=256,t=0,p=1$\(salt)$\(hash)", .parameterRange),
            ("$argon2id$v=19$m=256,t=2,p=9$\(salt)$\(hash)", .parameterRange),
            ("$argon2id$v=19$m=256,t=2,p=0$\(salt)$\(hash)", .parameterRange),
            ("$argon2id$v=19$m=15,t=2,p=2$\(salt)$\(hash)", .parameterRange),
            ("$argon2id$v=19$m=256,t=2,p=1$$\(hash)", .salt),
            ("$argon2id$v=19$m=256,t=2,p=1$c29t$\(hash)", .salt),
            ("$argon2id$v=19$m=256,t=2,p=1$\(salt)=$\(hash)", .salt),
            ("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHR$\(hash)", .salt),
            ("$argon2id$v=19$m=256,t=2,p=1$\(salt)$", .hash),
            ("$argon2id$v=19$m=256,t=2,p=1$\(salt)$\(hash)AA", .hash),
            ("$argon2id$v=19$m=256,t=2,p=1$\(salt)$\(hash) ", .hash),
            ("$argon2id$v=19$m=256,t=2,p=1$\(salt)$\(hash)\u{0}", .hash),
            ("$argon2id$v=19$m=256,t=2,p=1$\(salt)$c29tZXNhbHQ", .hash),
        ])
    func refuses(text: String, error: PasswordHashSyntaxError) {
        #expect(throws: error) { try PasswordHash(parsing: Array(text.utf8)) }
    }

    @Test("libargon2 accepts every accepted hash, cut or changed at any byte")
    func strictness() throws {
        let encoded = Array(try cheapHash("secret").encoded.utf8)
        for end in 0..<encoded.count {
            // A shorter last field may be a valid hash of other bytes, which must not match.
            if let cut = try? PasswordHash(parsing: encoded[..<end]) {
                #expect(!cut.matches("secret"), "cut at \(end)")
            }
        }
        for index in encoded.indices {
            var changed = encoded
            changed[index] ^= 1
            if let hash = try? PasswordHash(parsing: changed) {
                #expect(!hash.matches("secret"), "changed at \(index)")
            }
        }
    }
}

@Suite("SecretBytes")
struct SecretBytesTests {
    @Test("grows and shrinks byte by byte up to its capacity")
    func appendAndRemove() {
        var secret = SecretBytes(capacity: 2)
        let startsEmpty = secret.isEmpty
        secret.append(1)
        secret.append(2)
        let isFull = secret.isFull
        let bytes = secret.withBytes { Array($0) }
        let removed = [secret.removeLast(), secret.removeLast(), secret.removeLast()]
        #expect(startsEmpty)
        #expect(isFull)
        #expect(bytes == [1, 2])
        #expect(removed == [2, 1, nil])
    }

    @Test(
        "is equal to the same bytes only",
        arguments: [([1, 2, 3], true), ([1, 2], false), ([1, 2, 4], false), ([], false)]
            as [([UInt8], Bool)])
    func equality(other: [UInt8], expected: Bool) {
        let secret = SecretBytes(copying: [1, 2, 3])
        let isEqual = secret.equals(SecretBytes(copying: other))
        #expect(isEqual == expected)
    }
}
