import AdminTLS
import Glibc
import NIOSSL
import Testing

@testable import AdminAPI

@Suite("AdminCertificates")
struct AdminCertificatesTests {
    /// Certificates from a pair of files that the body may change.
    private func withCertificates(
        _ body: (AdminCertificates, AdminTLSSettings, CapturedLog) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            let log = CapturedLog()
            let settings = AdminTLSSettings(
                certificate: directory + "/certificate", key: directory + "/key")
            try TestPair.first.write(certificate: settings.certificate, key: settings.key)
            let certificates = try AdminCertificates(settings, logger: log.logger)
            try body(certificates, settings, log)
        }
    }

    /// Waits for longer than a step of the kernel's file timestamps.
    private func letTheClockMove() { usleep(20_000) }

    @Test("the cure that the log names is noticed at the next connection")
    func cure() throws {
        try withCertificates { certificates, settings, log in
            let first = certificates.context()
            letTheClockMove()
            try TestPair.second.write(certificate: settings.certificate, key: settings.key)
            chmod(settings.key, 0o644)
            #expect(certificates.context() === first)
            #expect(certificates.context() === first)
            let refused = log.lines(of: "Admin certificate unusable, the old one stays")
            #expect(refused.count == 1)
            #expect(refused.first?.metadata["problem"]?.contains("Run: chmod 600 ") == true)
            letTheClockMove()
            chmod(settings.key, 0o600)
            let second = certificates.context()
            #expect(second !== first)
            #expect(log.lines(of: "Admin certificate read again").count == 1)
            #expect(certificates.context() === second)
        }
    }

    @Test("a reload knows that the files are others than those in use, also after a refusal")
    func reloadAfterRefusal() throws {
        try withCertificates { certificates, settings, _ in
            let first = certificates.context()
            #expect(!certificates.isChanged(by: try certificates.read()))
            letTheClockMove()
            try TestPair.second.write(certificate: settings.certificate, key: settings.key)
            chmod(settings.key, 0o644)
            #expect(certificates.context() === first)
            letTheClockMove()
            chmod(settings.key, 0o600)
            let read = try certificates.read()
            #expect(certificates.isChanged(by: read))
            certificates.use(read)
            #expect(certificates.context() !== first)
            #expect(!certificates.isChanged(by: try certificates.read()))
        }
    }
}
