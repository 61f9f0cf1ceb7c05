import Glibc
import Testing

@testable import OperatorCLI

@Suite("config check")
struct ConfigCommandTests {
    @Test("the errors of all files are shown at once")
    func allAtOnce() async throws {
        let folder = try TemporaryFolder()
        let data = try TemporaryFolder()
        try data.write("nonsense\n", to: "tokens")
        let users = try folder.write("x\n", to: "users")
        let acl = try folder.write("allow all\n", to: "acl")
        let config = try folder.write(
            """
            data_directory: \(data.path)
            password_file: \(users)
            acl_file: \(acl)
            admin:
              tls: {certificate: \(folder.path)/none.pem, key: \(folder.path)/none.key}
            listeners:
              - tls: {certificate: \(folder.path)/none.pem, key: \(folder.path)/none.key}
            """, to: "hermes.yaml")
        chmod(data.path, 0o755)
        let checked = try await run(["config", "check", config])
        #expect(checked.exitCode == 2)
        #expect(checked.output.isEmpty)
        for problem in [
            "data_directory: \(data.path) can be entered by others (mode 755). Run: chmod 700 ",
            "\(users):1: ", "\(acl):1: ", "\(data.path)/tokens:1: ",
            "listeners[0].tls.certificate: ", "listeners[0].tls.key: ",
            "admin.tls.certificate: there is no file ", "admin.tls.key: there is no file ",
        ] {
            #expect(checked.errors.contains(problem), "\(problem) is not in \(checked.errors)")
        }
        #expect(!checked.errors.contains("plain"), "no cure takes TLS away")
    }

    @Test("a data directory that is not there yet is made at the start")
    func noDataYet() async throws {
        let folder = try TemporaryFolder()
        let config = try folder.write("data_directory: \(folder.path)/none", to: "hermes.yaml")
        #expect(try await run(["config", "check", config]).exitCode == 0)
    }

    @Test("a time zone is one of those by which quiet hours run, not any file that has its form")
    func timeZone() async throws {
        let folder = try TemporaryFolder()
        for (zone, isKnown) in [
            ("Europe/Berlin", true), ("UTC", true), ("right/Europe/Berlin", false),
            ("posix/Europe/Berlin", false), ("Europe//Berlin", false), ("Moon/Tycho", false),
        ] {
            let config = try folder.write(
                "data_directory: \(folder.path)/none\nwakes: {time_zone: \(zone)}",
                to: "hermes.yaml")
            let checked = try await run(["config", "check", config])
            #expect(checked.exitCode == (isKnown ? 0 : 2), "\(zone): \(checked.errors)")
            #expect(checked.errors.contains("none of the time zones") == !isKnown, "\(zone)")
        }
    }

    @Test("a data directory whose parent is missing is refused, as the start would")
    func noParent() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("", to: "file")
        for (path, complaint) in [
            ("\(folder.path)/none/data", "\(folder.path)/none cannot be opened"),
            ("\(folder.path)/none//data/", "\(folder.path)/none cannot be opened"),
        ] {
            let config = try folder.write("data_directory: \(path)", to: "hermes.yaml")
            let checked = try await run(["config", "check", config])
            #expect(checked.exitCode == 2)
            #expect(checked.errors.contains(complaint), "\(checked.errors)")
        }
        let config = try folder.write("data_directory: \(file)/data", to: "hermes.yaml")
        #expect(try await run(["config", "check", config]).exitCode == 2)
    }

    @Test("a file in place of the data directory is one mistake")
    func noFolder() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("", to: "message")
        let config = try folder.write("data_directory: \(file)", to: "hermes.yaml")
        let checked = try await run(["config", "check", config])
        #expect(checked.exitCode == 2)
        #expect(checked.errors.contains("data_directory: \(file) is not a folder"))
        #expect(!checked.errors.contains("\(file)/"), "nothing is said of files in it")
    }

    @Test("a data directory that is a link to nothing is named as that")
    func danglingLink() async throws {
        let folder = try TemporaryFolder()
        try #require(symlink("\(folder.path)/none", folder.file("data")) == 0)
        let config = try folder.write(
            "data_directory: \(folder.file("data"))", to: "hermes.yaml")
        let checked = try await run(["config", "check", config])
        #expect(checked.exitCode == 2)
        #expect(checked.errors.contains("\(folder.file("data")) is a link to a folder that is not"))
    }

    @Test("an error in a relative data directory is a warning, since the broker's may differ")
    func relativeFolder() async throws {
        let folder = try TemporaryFolder()
        let data = try TemporaryFolder()
        chmod(data.path, 0o755)
        // A relative path through the root, valid in any working directory.
        let path = String(repeating: "../", count: 64) + data.path.dropFirst()
        let config = try folder.write("data_directory: \(path)", to: "hermes.yaml")
        let checked = try await run(["config", "check", config])
        #expect(checked.exitCode == 0)
        #expect(checked.output == "\(config): ok\n")
        #expect(checked.errors.contains("set HERMES_DATA_DIRECTORY"))
        #expect(checked.errors.contains("warning: data_directory: /"), "the absolute path")

        let absolute = try await run(
            ["config", "check", config], environment: ["HERMES_DATA_DIRECTORY": data.path])
        #expect(absolute.exitCode == 2)
        #expect(absolute.errors.contains("Run: chmod 700 '\(data.path)'"))
    }

    @Test("the certificate of the HTTP API is judged by the library that serves it")
    func shortKey() async throws {
        let folder = try TemporaryFolder()
        let certificate = try folder.write(Self.certificate, to: "certificate")
        let key = try folder.write(Self.key, to: "key")
        let config = try folder.write(
            "admin: {tls: {certificate: \(certificate), key: \(key)}}\n", to: "hermes.yaml")
        let checked = try await run(["config", "check", config])
        #expect(checked.exitCode == 0, "\(checked.errors)")
    }

    @Test("a configuration that is not there is to be written")
    func missing() async throws {
        let folder = try TemporaryFolder()
        let checked = try await run(["config", "check", folder.file("none.yaml")])
        #expect(checked.exitCode == 2)
        #expect(checked.errors.contains("write the file"))
        #expect(!checked.errors.contains("leave out --config"))
    }

    /// An RSA key of 1024 bits, valid for a hundred years, which OpenSSL rejects.
    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIB+jCCAWOgAwIBAgIUfj0nl6Zb8tvczsuHpkfPL8PskTUwDQYJKoZIhvcNAQEL
        BQAwDjEMMAoGA1UEAwwDb2xkMCAXDTI2MTEyMjEzMTQxN1oYDzIxMjYxMDI5MTMx
        NDE3WjAOMQwwCgYDVQQDDANvbGQwgZ8wDQYJKoZIhvcNAQEBBQADgY0AMIGJAoGB
        AOFTvUL1UGGV95+buZB3xgREufsP10vmokbIQXxooU1yfDVBvTtxUIzoSWSwWmkk
        RZh+O6MGzaWFGR/IVC3MxiwcrMD+4A79x9rD2n1y3zkl+pD30m0czO4hIdhS1RdS
        iIhPxZb/L6kFYw9LYednEaKlLdL9+7YGZNWFnmonja+zAgMBAAGjUzBRMB0GA1Ud
        DgQWBBQ1mJeU45nypULnXurbj+Qy4wB3+TAfBgNVHSMEGDAWgBQ1mJeU45nypULn
        Xurbj+Qy4wB3+TAPBgNVHRMBAf8EBTADAQH/MA0GCSqGSIb3DQEBCwUAA4GBANQ+
        jier4GyNZA9EmiXbt0W23Nl4wa7U3TXIoB9D4pZVJNuUT3BGW7oLBganGwYFv/Jo
        EFLMiwdDdggmRgDKizS20i3XQTO1Y7Ng8L0maoTDj3xBIWWHWQEOEIypR+E1AbB2
        BQ5K98UVyHcaI7ELEpy+GEp8r9b5Xh12857iGnYQ
        -----END CERTIFICATE-----

        """
    private static let key = """
        -----BEGIN PRIVATE KEY-----
        MIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBAOFTvUL1UGGV95+b
        uZB3xgREufsP10vmokbIQXxooU1yfDVBvTtxUIzoSWSwWmkkRZh+O6MGzaWFGR/I
        VC3MxiwcrMD+4A79x9rD2n1y3zkl+pD30m0czO4hIdhS1RdSiIhPxZb/L6kFYw9L
        YednEaKlLdL9+7YGZNWFnmonja+zAgMBAAECgYBdaVq/xHUjT4mNeIBwPMcxg9Ba
        HZISnDVQBLrpOXMNaVXGuk8ZsntDPxUWEeoZRnk3o7VTe4GLiecFfwYuyoKohcKp
        m8vimWdHae0MlLJm7ua3kzQbZuo2YfBi9H2Htqm1tpvQMBR7RYHbVyzhMdHqSJ4r
        tUdzQsdHbczr8AmxaQJBAPHLLGhA13LOJWw9ExRWvASpDAv6+ih7gonPZdXllgLW
        RuDlKXWcSE3ULT+SI1OoUi87ApzWQdOsknDkhif9Pn8CQQDukORdSAbdDlYA4FuM
        0RB8XxLfPL6ivdxu/vSV8DW7SbMwIJQFGTFg44RxU9tEdsJdRq48zV4D8P4zo1hU
        M1zNAkBTH2e6x1/JxfizhyOCAHdOmtbbX4KUXDF6MuRtbint+8AOHHnuRrXMm76a
        diDS57CpL/4r8LRckp0dVlKQeMz9AkEA210z/2pJlV6nSmsDA7sBs7sgeVE74h0+
        4nlhobWdUrf0Ip7yPLXrp7HNiP+YsZ2aH3bspFAa0Pj6ZbUfdV09SQJBANYTSYy9
        ze3VzuDiGV19MAx6Ptr0nvkAb7uf+2RqCKTSLmHM8lrraJ+EwxiTvP5Zkef42DcV
        4yAIfZop+XL5KsU=
        -----END PRIVATE KEY-----

        """
}
