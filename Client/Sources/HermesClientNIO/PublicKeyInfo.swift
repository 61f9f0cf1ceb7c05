#if canImport(Network)
    import Foundation
    import Security

    /// The SubjectPublicKeyInfo of a certificate (RFC 5280, section 4.1): the system gives the bare
    /// key, and the part before it says of which kind it is.
    enum PublicKeyInfo {
        /// `nil` for kinds of keys that brokers do not use: RSA of 2,048 to 4,096 bits, P-256 and
        /// P-384 are known.
        static func bytes(of certificate: SecCertificate) -> Data? {
            guard let key = SecCertificateCopyKey(certificate),
                let attributes = SecKeyCopyAttributes(key) as? [CFString: Any],
                let type = attributes[kSecAttrKeyType] as? String,
                let bits = attributes[kSecAttrKeySizeInBits] as? Int,
                let bare = SecKeyCopyExternalRepresentation(key, nil) as Data?
            else { return nil }
            if type == kSecAttrKeyTypeRSA as String { return rsa(bare) }
            guard type == kSecAttrKeyTypeECSECPrimeRandom as String else { return nil }
            switch bits {
            case 256: return sequence(sequence(ecPublicKey + prime256) + bitString(bare))
            case 384: return sequence(sequence(ecPublicKey + secp384) + bitString(bare))
            default: return nil
            }
        }

        // Object identifiers in DER (RFC 5480, RFC 3279).
        private static let ecPublicKey = Data([6, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1])
        private static let prime256 = Data([6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7])
        private static let secp384 = Data([6, 5, 0x2B, 0x81, 4, 0, 0x22])
        private static let rsaEncryption = Data(
            [6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1, 5, 0])

        private static func rsa(_ bare: Data) -> Data {
            sequence(sequence(rsaEncryption) + bitString(bare))
        }

        private static func sequence(_ content: Data) -> Data { element(0x30, content) }

        private static func bitString(_ content: Data) -> Data {
            element(3, Data([0]) + content)
        }

        private static func element(_ tag: UInt8, _ content: Data) -> Data {
            let count = content.count
            let length: [UInt8] =
                switch count {
                case ..<128: [UInt8(count)]
                case ..<256: [0x81, UInt8(count)]
                default: [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
                }
            return Data([tag] + length) + content
        }
    }
#endif
