import PlainText
import RequestText

extension KeySet {
    /// A document holds no set of keys; the text is a clause about the document.
    package struct Malformed: Error, Equatable {
        package let reason: String
    }

    /// The largest document in bytes; that of a large provider has some 10 KiB.
    package static let longestDocument = 256 << 10

    /// Reads a JSON Web Key Set (RFC 7517). Keys that are of no use here (other algorithms, for
    /// encryption, too short, or malformed) are skipped and told, since a provider may add such keys
    /// at any time; the set is refused if none is left.
    ///
    /// `allowsSecrets` is false for a document that others can read, such as one that is fetched:
    /// secrets (`oct`) in it are skipped.
    ///
    /// - Throws: ``Malformed``.
    package init(document: [UInt8], allowsSecrets: Bool) throws(Malformed) {
        let elements = try Self.elements(of: document)
        var keys: [VerificationKey] = []
        var skipped: [String] = []
        var names: Set<ForeignText> = []
        for (index, element) in elements.enumerated() {
            guard case .object(let members) = element else {
                throw Malformed(reason: "keys[\(index)] is \(element.kindName), and no object")
            }
            let key = JSONWebKey(members)
            let shown = key.string("kid").map { TokenRefusal.quoted($0) } ?? "keys[\(index)]"
            do throws(VerificationKey.Unusable) {
                let key = try key.verificationKey(allowsSecrets: allowsSecrets)
                if let name = key.identifier, !names.insert(name).inserted {
                    throw VerificationKey.Unusable(reason: "a key before it has the same name")
                }
                keys.append(key)
            } catch {
                skipped.append("\(shown): \(error.reason)")
            }
        }
        guard !keys.isEmpty else {
            throw Malformed(
                reason: skipped.isEmpty
                    ? "there is no key in it"
                    : "none of its keys can be used: \(skipped.joined(separator: "; "))")
        }
        self.init(keys, skipped: skipped)
    }

    private static func elements(of document: [UInt8]) throws(Malformed) -> [JSONValue] {
        guard document.count <= longestDocument else {
            throw Malformed(
                reason: "it has \(document.count) bytes, more than \(longestDocument)")
        }
        let value: JSONValue
        do throws(JSONSyntaxError) {
            value = try JSONParser.parse(document)
        } catch {
            throw Malformed(reason: "it is no JSON: \(error)")
        }
        guard case .object(let members) = value,
            case .array(let elements)? = members.first(where: { $0.name == "keys" })?.value
        else {
            throw Malformed(reason: "it is no JSON Web Key Set: there is no list `keys` in it")
        }
        guard elements.count <= mostKeys else {
            throw Malformed(reason: "it has \(elements.count) keys, more than \(mostKeys)")
        }
        return elements
    }
}

/// One key in JSON (RFC 7517, section 4; RFC 7518, section 6; RFC 8037, section 2).
private struct JSONWebKey {
    private let members: [JSONMember]

    init(_ members: [JSONMember]) { self.members = members }

    func string(_ name: ForeignText) -> ForeignText? {
        guard case .string(let text)? = value(name) else { return nil }
        return text
    }

    private func value(_ name: ForeignText) -> JSONValue? {
        let value = members.first { $0.name == name }?.value
        return value == .null ? nil : value
    }

    func verificationKey(
        allowsSecrets: Bool
    ) throws(VerificationKey.Unusable) -> VerificationKey {
        let identifier = try identifier()
        try checkPurpose()
        let key: VerificationKey
        switch string("kty") {
        case "oct"?:
            guard allowsSecrets else {
                throw VerificationKey.Unusable(reason: "it is a secret that others could read")
            }
            let secret = try bytes("k")
            guard VerificationKey.secretByteCounts.contains(secret.count) else {
                throw VerificationKey.Unusable(
                    reason: "its secret has \(secret.count) bytes; HS256 needs at least 32")
            }
            key = VerificationKey(identifier: identifier, secret: secret)
        case "RSA"?:
            try refusePrivatePart()
            let (modulus, exponent) = (try bytes("n"), try bytes("e"))
            // Longer numbers are refused before OpenSSL sees them.
            guard modulus.count <= 1_025, exponent.count <= 8 else {
                throw VerificationKey.Unusable(reason: "its numbers are too long")
            }
            key = try VerificationKey(
                identifier: identifier,
                encoded: DER.publicKey(modulus: modulus, exponent: exponent))
        case "EC"?:
            try refusePrivatePart()
            guard string("crv") == "P-256" else {
                throw VerificationKey.Unusable(reason: "its curve is not P-256")
            }
            let (x, y) = (try bytes("x", count: 32), try bytes("y", count: 32))
            key = try VerificationKey(identifier: identifier, encoded: DER.publicKey(x: x, y: y))
        case "OKP"?:
            try refusePrivatePart()
            guard string("crv") == "Ed25519" else {
                throw VerificationKey.Unusable(reason: "its curve is not Ed25519")
            }
            key = try VerificationKey(
                identifier: identifier, encoded: DER.publicKey(ed25519: try bytes("x", count: 32)))
        default:
            throw VerificationKey.Unusable(reason: "its type (`kty`) is not RSA, EC, OKP or oct")
        }
        if let asked = value("alg"), asked != .string(key.algorithm.name) {
            throw VerificationKey.Unusable(
                reason: "its `alg` is not \(key.algorithm.rawValue), for which it would be used")
        }
        return key
    }

    private func identifier() throws(VerificationKey.Unusable) -> ForeignText? {
        guard let value = value("kid") else { return nil }
        guard case .string(let name) = value, name.utf8.count <= TokenHeader.longestIdentifier
        else {
            throw VerificationKey.Unusable(
                reason: "its `kid` is no string of at most \(TokenHeader.longestIdentifier) bytes")
        }
        return name
    }

    private func checkPurpose() throws(VerificationKey.Unusable) {
        if let use = value("use"), use != .string("sig") {
            throw VerificationKey.Unusable(reason: "its `use` is not sig")
        }
        guard let operations = value("key_ops") else { return }
        guard case .array(let names) = operations, names.contains(.string("verify")) else {
            throw VerificationKey.Unusable(reason: "its `key_ops` lack verify")
        }
    }

    /// A private key that is published can sign tokens in everybody's hands.
    private func refusePrivatePart() throws(VerificationKey.Unusable) {
        guard value("d") == nil else {
            throw VerificationKey.Unusable(
                reason: "it is a private key, which belongs to the issuer alone")
        }
    }

    /// The bytes of a member, all of them or exactly so many.
    private func bytes(
        _ name: ForeignText, count: Int? = nil
    ) throws(VerificationKey.Unusable) -> [UInt8] {
        guard let text = string(name), let bytes = Base64URL.decode(text.utf8), !bytes.isEmpty,
            count.map({ $0 == bytes.count }) ?? true
        else {
            throw VerificationKey.Unusable(reason: "its `\(name)` is missing or malformed")
        }
        return bytes
    }
}
