import Glibc
import Testing

@testable import TLS

@Suite("Files of a TLS listener")
struct LoaderTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates() }

    private func problems(_ settings: TLSSettings) -> [TLSProblem] {
        do throws(TLSProblems) {
            _ = try TLSContext(settings, tickets: TicketKeys())
            return []
        } catch {
            return error.problems
        }
    }

    @Test("all errors of the files are reported together, with key and advice")
    func allProblems() throws {
        let pair = try certificates.make(commonName: Array("a".utf8)).files
        let other = try certificates.make(commonName: Array("b".utf8)).files
        let empty = try certificates.file("empty", "\n")
        let folder = certificates.folder
        let cases: [(TLSSettings.Pair, key: String, complaint: String)] = [
            (.init(certificate: "\(folder)/no", key: pair.key), "certificate", "No such file"),
            (.init(certificate: pair.certificate, key: "\(folder)/no"), "key", "No such file"),
            (.init(certificate: empty, key: pair.key), "certificate", "holds no certificate"),
            (.init(certificate: pair.certificate, key: empty), "key", "holds no private key"),
            (.init(certificate: pair.key, key: pair.key), "certificate", "holds no certificate"),
            (.init(certificate: pair.certificate, key: other.key), "key", "is not the key of"),
            (.init(certificate: folder, key: pair.key), "certificate", "is no regular file"),
            (.init(certificate: "/dev/zero", key: pair.key), "certificate", "is no regular file"),
        ]
        for (pair, key, complaint) in cases {
            let found = problems(TLSSettings(place: "listeners[3].tls", certificates: [pair]))
            #expect(found.map(\.key) == ["listeners[3].tls.\(key)"], "\(pair)")
            #expect(found.first?.complaint.contains(complaint) == true, "\(found)")
            #expect(found.first?.cure.isEmpty == false)
        }
        let all = problems(TLSSettings(place: "tls", certificates: cases.map(\.0)))
        #expect(all.count == cases.count)
    }

    @Test(
        "a key that others may read is refused, one for the group is not",
        arguments: [
            (mode_t(0o600), true), (0o400, true), (0o640, true), (0o604, false), (0o644, false),
            (0o602, false), (0o660, false), (0o620, false),
        ])
    func keyModes(mode: mode_t, isTaken: Bool) throws {
        let pair = try certificates.make(commonName: Array("a".utf8)).files
        chmod(pair.key, mode)
        let found = problems(TLSSettings(place: "tls", certificates: [pair]))
        #expect(found.isEmpty == isTaken, "\(found)")
        #expect(isTaken || found.first?.cure.contains("chmod") == true)
    }

    @Test("a certificate in the place of its key is named as that, whatever its mode")
    func swapped() throws {
        let pair = try certificates.make(commonName: Array("a".utf8)).files
        chmod(pair.certificate, 0o644)
        let swapped = TLSSettings.Pair(certificate: pair.key, key: pair.certificate)
        let found = problems(TLSSettings(place: "tls", certificates: [swapped]))
        #expect(found.contains { $0.complaint.contains("holds a certificate and no key") })
        #expect(found.contains { $0.cure.contains("swapped") })
        #expect(!found.contains { $0.cure.contains("chmod") })
    }

    @Test("lists and authorities that are none are refused")
    func clientFiles() throws {
        let pair = try certificates.make(commonName: Array("a".utf8)).files
        var settings = TLSSettings(place: "tls", certificates: [pair])
        settings.clientCertificates = .required
        settings.clientCAFile = try certificates.file("empty", "no PEM\n")
        settings.crlFile = pair.certificate
        #expect(
            problems(settings).map(\.key) == ["tls.client_ca_file", "tls.crl_file"])
    }

    @Test("a broken object behind a good one is not passed over")
    func brokenTail() throws {
        let pair = try certificates.make(commonName: Array("a".utf8)).files
        let other = try certificates.make(commonName: Array("b".utf8)).files
        let broken = """
            -----BEGIN CERTIFICATE-----
            bm90aGluZw==
            -----END CERTIFICATE-----

            """
        let whole = try read(other.certificate)
        var settings = TLSSettings(place: "tls", certificates: [pair])
        settings.clientCertificates = .required
        settings.clientCAFile = try certificates.file("bundle", whole + broken)
        #expect(problems(settings).map(\.key) == ["tls.client_ca_file"])
        settings.clientCAFile = try certificates.file("bundle", whole)
        #expect(problems(settings) == [])
    }

    @Test("a file name with control characters is escaped in a message")
    func escapedNames() {
        let pair = TLSSettings.Pair(certificate: "/no\u{1B}[31m\n", key: "/no")
        let found = problems(TLSSettings(place: "tls", certificates: [pair]))
        #expect(found.count == 2)
        for problem in found {
            #expect(!problem.description.unicodeScalars.contains { $0.value < 0x20 })
        }
    }

    private func read(_ path: String) throws -> String {
        String(decoding: try TLSFile.read(path, isSecret: false), as: UTF8.self)
    }
}
