import CArgon2
import PlainText

/// An Argon2id hash with salt and parameters, in libargon2's encoding:
/// `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>`, base64 without padding.
package struct PasswordHash: Hashable, Sendable {
    package let parameters: Argon2Parameters
    /// ASCII text that matches the whole grammar.
    package let encoded: String

    private static let saltByteCount = 16
    private static let hashByteCount = 32
    private static let acceptedSaltByteCount = 8...64
    private static let acceptedHashByteCount = 16...64

    /// Hashes a password with a new random salt. Takes about 20 ms with the standard parameters, so
    /// no thread that serves connections may call it.
    package init(
        hashing password: borrowing SecretBytes, parameters: Argon2Parameters = .standard
    ) throws(PasswordHashingError) {
        let salt = Self.randomSalt()
        // Includes libargon2's terminating NUL; 256 bytes hold the longest encoding of 16 + 32.
        var buffer = [CChar](repeating: 0, count: 256)
        let code = password.withBytes { bytes in
            argon2id_hash_encoded(
                parameters.iterations, parameters.memoryKiB, parameters.parallelism,
                bytes.baseAddress, bytes.count, salt, salt.count, Self.hashByteCount, &buffer,
                buffer.count)
        }
        guard code == ARGON2_OK.rawValue else { throw PasswordHashingError(code: code) }
        self.parameters = parameters
        encoded = String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    }

    /// Parses an encoded hash.
    package init(parsing text: some Collection<UInt8>) throws(PasswordHashSyntaxError) {
        guard text.count <= 512, let string = String(validating: text, as: UTF8.self) else {
            throw .notArgon2id
        }
        let fields = string.parts(separator: "$")
        guard fields.count >= 2, fields[0].isEmpty, fields[1].hasBytes(of: "argon2id") else {
            throw .notArgon2id
        }
        guard fields.count == 6 else { throw .fieldCount }
        guard fields[2].hasBytes(of: "v=\(ARGON2_VERSION_13.rawValue)") else { throw .version }
        parameters = try Self.parseParameters(fields[3])
        guard let salt = Self.decodedByteCount(fields[4]),
            Self.acceptedSaltByteCount.contains(salt)
        else { throw .salt }
        guard let hash = Self.decodedByteCount(fields[5]),
            Self.acceptedHashByteCount.contains(hash)
        else { throw .hash }
        encoded = string
    }

    /// True if this is the hash of that password. Costs what ``parameters`` say, whatever the
    /// answer; false also without enough memory for it.
    package func matches(_ password: UnsafeRawBufferPointer) -> Bool {
        argon2id_verify(encoded, password.baseAddress, password.count) == ARGON2_OK.rawValue
    }

    /// The system generator uses getrandom(2) on Linux, which is fit for a salt.
    private static func randomSalt() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<saltByteCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    private static func parseParameters(
        _ field: Substring
    ) throws(PasswordHashSyntaxError) -> Argon2Parameters {
        let parts = field.parts(separator: ",")
        guard parts.count == 3,
            let memoryKiB = number(after: "m=", in: parts[0]),
            let iterations = number(after: "t=", in: parts[1]),
            let parallelism = number(after: "p=", in: parts[2])
        else { throw .parameterSyntax }
        guard
            let parameters = Argon2Parameters(
                memoryKiB: memoryKiB, iterations: iterations, parallelism: parallelism)
        else { throw .parameterRange }
        return parameters
    }

    /// The decimal number after `name`, without sign and leading zero.
    private static func number(after name: String, in part: Substring) -> UInt32? {
        guard let digits = part.text(after: name), let value = UInt32(digits),
            String(value).hasBytes(of: digits)
        else { return nil }
        return value
    }

    /// The number of bytes behind a base64 field without padding; `nil` when it is not canonical.
    private static func decodedByteCount(_ field: Substring) -> Int? {
        var lastValue: UInt8 = 0
        for byte in field.utf8 {
            guard let value = base64Value(byte) else { return nil }
            lastValue = value
        }
        let count = field.utf8.count
        // Unused bits of the last character must be zero, or two texts would mean one value.
        switch count % 4 {
        case 0: return count / 4 * 3
        case 2: return lastValue & 0x0F == 0 ? count / 4 * 3 + 1 : nil
        case 3: return lastValue & 0x03 == 0 ? count / 4 * 3 + 2 : nil
        default: return nil
        }
    }

    private static func base64Value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}

/// A hash could not be computed, for a lack of memory and the like; the password is not to blame.
package struct PasswordHashingError: Error, Equatable, CustomStringConvertible {
    /// libargon2's error code.
    package let code: CInt

    package var description: String {
        """
        cannot compute the password's hash: \(String(cString: argon2_error_message(code))). \
        Check that 32 MiB of memory are free.
        """
    }
}

/// The reason for which a file's text is no acceptable Argon2id hash. The text itself is never
/// repeated: it may be a password that somebody wrote down in clear.
package enum PasswordHashSyntaxError: Error, Equatable, CustomStringConvertible {
    case notArgon2id
    case fieldCount
    case version
    case parameterSyntax
    case parameterRange
    case salt
    case hash

    package var description: String {
        switch self {
        case .notArgon2id: "what follows the name is not an Argon2id hash ($argon2id$...)"
        case .fieldCount: "the hash has not the form $argon2id$v=19$m=...,t=...,p=...$salt$hash"
        case .version: "the hash is of another version than v=19"
        case .parameterSyntax: "the hash's parameters have not the form m=...,t=...,p=..."
        case .parameterRange:
            """
            the hash's parameters are out of range (m up to \
            \(Argon2Parameters.maximumMemoryKiB) KiB and at least 8 per lane, t 1 to \
            \(Argon2Parameters.maximumIterations), p 1 to \
            \(Argon2Parameters.maximumParallelism), m times t up to \
            \(Argon2Parameters.maximumWorkKiB))
            """
        case .salt: "the hash's salt is damaged or not 8 to 64 bytes long"
        case .hash: "the hash's last field is damaged or not 16 to 64 bytes long"
        }
    }
}
