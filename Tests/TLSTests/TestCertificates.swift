import COpenSSL
import Glibc
import Testing

@testable import TLS

/// Makes certificates as PEM files in a folder of its own, which is removed with it.
final class TestCertificates {
    /// A certificate with its key, in memory and in files.
    struct Pair {
        let certificate: OpaquePointer
        let key: OpaquePointer
        let files: TLSSettings.Pair
    }

    struct Failure: Error {
        let description: String
    }

    let folder: String
    private var pairs: [Pair] = []
    private var lastNumber = 0

    init() throws {
        var template = Array("/tmp/hermes-tls-tests-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure(description: "no folder: \(errno)") }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for pair in pairs {
            X509_free(pair.certificate)
            EVP_PKEY_free(pair.key)
        }
        guard let stream = opendir(folder) else { return }
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { unlink("\(folder)/\(name)") }
        }
        closedir(stream)
        rmdir(folder)
    }

    /// A certificate with a P-256 key, signed by `issuer` or self-signed. `commonName` is written
    /// unchanged as UTF-8. Valid from yesterday for `days`.
    func make(
        commonName: [UInt8]?, alternativeNames: String? = nil, issuer: Pair? = nil,
        isAuthority: Bool = false, days: Int = 30, secondName: [UInt8]? = nil
    ) throws -> Pair {
        lastNumber += 1
        let key = try makeKey()
        guard let certificate = X509_new() else { throw Failure(description: "no memory") }
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), lastNumber)
        X509_gmtime_adj(X509_getm_notBefore(certificate), -86_400)
        X509_gmtime_adj(X509_getm_notAfter(certificate), days * 86_400)
        X509_set_pubkey(certificate, key)
        for name in [commonName, secondName].compactMap({ $0 }) {
            X509_NAME_add_entry_by_NID(
                X509_get_subject_name(certificate), NID_commonName, V_ASN1_UTF8STRING, name,
                CInt(name.count), -1, 0)
        }
        X509_set_issuer_name(
            certificate, X509_get_subject_name(issuer?.certificate ?? certificate))
        if let alternativeNames { try add(NID_subject_alt_name, alternativeNames, to: certificate) }
        if isAuthority { try add(NID_basic_constraints, "critical,CA:TRUE", to: certificate) }
        guard X509_sign(certificate, issuer?.key ?? key, EVP_sha256()) > 0 else {
            throw Failure(description: "not signed: \(OpenSSLErrors.take())")
        }
        let stem = "\(folder)/\(lastNumber)"
        try write("\(stem).crt") { PEM_write_bio_X509($0, certificate) }
        try write("\(stem).key") { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        let pair = Pair(
            certificate: certificate, key: key,
            files: TLSSettings.Pair(certificate: "\(stem).crt", key: "\(stem).key"))
        pairs.append(pair)
        return pair
    }

    /// A file with an authority's revocation list, valid from yesterday for `days`.
    func list(
        _ name: String, of authority: Pair, revoked: [Pair] = [], days: Int = 30
    ) throws -> String {
        let (path, text) = ("\(folder)/\(name)", try listText(of: authority, revoked, days))
        try write(path) { BIO_write($0, text, CInt(text.count)) }
        return path
    }

    /// A file with the lists of several authorities; `revoked` is the only revoked certificate.
    func lists(
        _ name: String, of authorities: [Pair], revoked: [Pair] = [], days: Int = 30
    ) throws -> String {
        let path = "\(folder)/\(name)"
        let text = try authorities.flatMap { try listText(of: $0, revoked, days) }
        try write(path) { BIO_write($0, text, CInt(text.count)) }
        return path
    }

    private func listText(of authority: Pair, _ revoked: [Pair], _ days: Int) throws -> [UInt8] {
        let list = X509_CRL_new()
        defer { X509_CRL_free(list) }
        X509_CRL_set_version(list, 1)
        X509_CRL_set_issuer_name(list, X509_get_subject_name(authority.certificate))
        for (seconds, isEnd) in [(-86_400, false), (days * 86_400, true)] {
            let time = X509_gmtime_adj(nil, seconds)
            if isEnd {
                X509_CRL_set1_nextUpdate(list, time)
            } else {
                X509_CRL_set1_lastUpdate(list, time)
            }
            ASN1_STRING_free(time)
        }
        for pair in revoked
        where X509_NAME_cmp(
            X509_get_issuer_name(pair.certificate),
            X509_get_subject_name(authority.certificate)) == 0
        {
            let entry = X509_REVOKED_new()
            X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(pair.certificate))
            let time = X509_gmtime_adj(nil, -3_600)
            X509_REVOKED_set_revocationDate(entry, time)
            ASN1_STRING_free(time)
            X509_CRL_add0_revoked(list, entry)
        }
        X509_CRL_sort(list)
        guard X509_CRL_sign(list, authority.key, EVP_sha256()) > 0 else {
            throw Failure(description: "not signed: \(OpenSSLErrors.take())")
        }
        let output = BIO_new(BIO_s_mem())
        defer { BIO_free(output) }
        PEM_write_bio_X509_CRL(output, list)
        var text = [UInt8](repeating: 0, count: 1 << 16)
        let count = BIO_read(output, &text, CInt(text.count))
        return [UInt8](text.prefix(Int(max(count, 0))))
    }

    /// A file with these bytes and this mode; returns its path.
    func file(_ name: String, _ text: String, mode: mode_t = 0o600) throws -> String {
        let path = "\(folder)/\(name)"
        try write(path) { BIO_write($0, text, CInt(text.utf8.count)) }
        chmod(path, mode)
        return path
    }

    private func makeKey() throws -> OpaquePointer {
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw Failure(description: "no key: \(OpenSSLErrors.take())") }
        return key
    }

    private func add(_ nid: CInt, _ value: String, to certificate: OpaquePointer) throws {
        guard let made = X509V3_EXT_conf_nid(nil, nil, nid, value) else {
            throw Failure(description: "no extension \(value): \(OpenSSLErrors.take())")
        }
        defer { X509_EXTENSION_free(made) }
        X509_add_ext(certificate, made, -1)
    }

    private func write(_ path: String, _ body: (OpaquePointer?) -> CInt) throws {
        let output = BIO_new_file(path, "w")
        defer { BIO_free(output) }
        guard body(output) > 0 else {
            throw Failure(description: "\(path): \(OpenSSLErrors.take())")
        }
        chmod(path, 0o600)
    }
}
