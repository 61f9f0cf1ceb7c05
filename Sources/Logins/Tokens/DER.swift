/// Writes the few structures of ASN.1 that keys and signatures need in DER (ITU-T X.690).
enum DER {
    static func sequence(_ content: [UInt8]) -> [UInt8] { element(0x30, content) }

    /// A number that is not negative, from its bytes with the highest first.
    static func integer(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var content = Array(bytes.drop { $0 == 0 })
        if content.first.map({ $0 >= 0x80 }) ?? true { content.insert(0, at: 0) }
        return element(0x02, content)
    }

    /// A string of whole bytes.
    static func bitString(_ bytes: [UInt8]) -> [UInt8] { element(0x03, [0] + bytes) }

    private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        var rest = content.count
        if rest < 0x80 {
            length = [UInt8(rest)]
        } else {
            while rest > 0 {
                length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
                rest >>= 8
            }
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + content
    }

    /// A public key (SubjectPublicKeyInfo) of RSA (RFC 8017, appendix A.1).
    static func publicKey(modulus: [UInt8], exponent: [UInt8]) -> [UInt8] {
        let rsaEncryption: [UInt8] = [
            0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05,
            0x00,
        ]
        let key = sequence(integer(modulus) + integer(exponent))
        return sequence(rsaEncryption + bitString(key))
    }

    /// A public key on P-256 (RFC 5480); both coordinates have 32 bytes.
    static func publicKey(x: [UInt8], y: [UInt8]) -> [UInt8] {
        let ecPublicKeyOnP256: [UInt8] = [
            0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A,
            0x86,
            0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07,
        ]
        return sequence(ecPublicKeyOnP256 + bitString([0x04] + x + y))
    }

    /// A public key of Ed25519 (RFC 8410), of 32 bytes.
    static func publicKey(ed25519 key: [UInt8]) -> [UInt8] {
        sequence([0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70] + bitString(key))
    }
}
