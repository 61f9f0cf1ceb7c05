import PlainText
import RequestText

/// A service account of Google's, as its console offers it (JSON): it may send to one Firebase project.
struct ServiceAccount: Sendable {
    let projectID: String
    let email: String
    let keyID: String
    let key: SigningKey
    /// Where its tokens come from (`token_uri`).
    let tokenHost: ServiceEndpoint
    let tokenPath: String
    let tokenURI: String

    /// The rights that are asked for.
    static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// Seconds for which an assertion counts; Google takes at most an hour.
    private static let assertionSeconds: Int64 = 3_600

    /// Reads the file, which nobody but its owner and group may read.
    static func load(path: String) throws(ProviderKey.Unusable) -> ServiceAccount {
        let expected = "a service account's JSON file"
        var bytes = try SecretFile.read(path, expected: expected)
        defer { bytes.erase() }
        let shown = VisibleText.quoted(path)
        guard case .object(let members)? = try? JSONParser.parse(bytes) else {
            throw ProviderKey.Unusable(
                description: """
                    \(shown) is no JSON object. Give the file that Google's console offers as a new \
                    key of a service account
                    """)
        }
        func text(_ name: ForeignText) throws(ProviderKey.Unusable) -> String {
            let member = members.first { $0.name == name }
            guard case .string(let text)? = member?.value, !text.isEmpty,
                text.utf8.count <= 8_192
            else {
                throw ProviderKey.Unusable(
                    description: """
                        \(shown) has no text "\(name.string)". Give the file that Google's console \
                        offers as a new key of a service account
                        """)
            }
            return text.string
        }
        guard try text("type").hasBytes(of: "service_account") else {
            throw ProviderKey.Unusable(
                description: """
                    \(shown) is for \(VisibleText.quoted(try text("type"))), not for a \
                    service_account. Give the key of a service account (Google's console, IAM)
                    """)
        }
        let project = try text("project_id")
        guard project.utf8.count <= 64, project.utf8.allSatisfy(isOfProject) else {
            throw ProviderKey.Unusable(
                description: """
                    \(shown) names the project \(VisibleText.quoted(project)), which cannot be the \
                    name of one. Give the file as Google's console offers it
                    """)
        }
        var pem = Array(try text("private_key").utf8)
        defer { pem.erase() }
        guard let key = SigningKey(pem: pem), key.isRSA else {
            throw ProviderKey.Unusable(
                description: """
                    \(shown) has no RSA key of 2048 bits or more as "private_key". Give the file as \
                    Google's console offers it
                    """)
        }
        let uri = try text("token_uri")
        guard let (host, path) = place(uri) else {
            throw ProviderKey.Unusable(
                description: """
                    \(shown) has \(VisibleText.quoted(uri)) as "token_uri", which is no https \
                    address. Google's is https://oauth2.googleapis.com/token
                    """)
        }
        return ServiceAccount(
            projectID: project, email: try text("client_email"),
            keyID: try text("private_key_id"), key: key, tokenHost: host, tokenPath: path,
            tokenURI: uri)
    }

    private static func isOfProject(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x3A, 0x5F: true
        default: false
        }
    }

    /// Host and path of an https address, without user, query and fragment.
    private static func place(_ uri: String) -> (ServiceEndpoint, String)? {
        let bytes = Array(uri.utf8)
        let scheme = Array("https://".utf8)
        guard bytes.count <= 256, bytes.starts(with: scheme) else { return nil }
        let rest = bytes.dropFirst(scheme.count)
        let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        let authority = rest[..<end].split(
            separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        let path = end == rest.endIndex ? Array("/".utf8) : Array(rest[end...])
        let isPath = path.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        guard let host = authority.first, authority.count <= 2, !host.isEmpty,
            host.allSatisfy({ isOfProject($0) && $0 != 0x5F && $0 != 0x3A }), isPath
        else { return nil }
        let port =
            authority.count == 2 ? UInt16(String(decoding: authority[1], as: UTF8.self)) : 443
        guard let port, port > 0 else { return nil }
        return (
            ServiceEndpoint(host: String(decoding: host, as: UTF8.self), port: port),
            String(decoding: path, as: UTF8.self)
        )
    }

    /// True when both sign alike for the same project.
    func equals(_ other: ServiceAccount) -> Bool {
        projectID.hasBytes(of: other.projectID) && email.hasBytes(of: other.email)
            && tokenURI.hasBytes(of: other.tokenURI) && key.equals(other.key)
    }

    /// The body of a request for an access token: an assertion signed with RS256 (RFC 7523, section
    /// 2.1; "Using OAuth 2.0 for server to server applications", Google documentation). `seconds` is
    /// UNIX time; `nil` when OpenSSL cannot sign.
    func tokenRequest(at seconds: Int64) -> [UInt8]? {
        var header = JSONBytes()
        header.text("{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":")
        header.string(keyID)
        header.text("}")
        var claims = JSONBytes()
        claims.text("{\"iss\":")
        claims.string(email)
        claims.text(",\"scope\":")
        claims.string(Self.scope)
        claims.text(",\"aud\":")
        claims.string(tokenURI)
        claims.text(",\"iat\":\(seconds),\"exp\":\(seconds + Self.assertionSeconds)}")
        let signed = Base64.urlText(of: header.bytes) + "." + Base64.urlText(of: claims.bytes)
        return key.signature(of: Array(signed.utf8)).map { signature in
            let grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
            let assertion = signed + "." + Base64.urlText(of: signature)
            return Array("grant_type=\(grant)&assertion=\(assertion)".utf8)
        }
    }
}
