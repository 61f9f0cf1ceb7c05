import BrokerAPI
import Glibc
import Testing

@testable import OperatorConfiguration

@Suite("Sample configuration and documentation")
struct DocumentationTests {
    @Test("the sample parses and equals the built-in values")
    func sampleIsDefault() throws {
        let configuration = try ConfigurationLoader(source: .file(Self.samplePath)).load()
        #expect(configuration == HermesConfiguration())
    }

    @Test("the sample shows every key with its default", arguments: Setting.all)
    func sampleShows(setting: Setting) throws {
        let name = try #require(setting.pattern.split(separator: ".").last)
        let initial = setting.show(HermesConfiguration(), 0)
        let lines = try Self.lines(of: Self.samplePath)
        #expect(
            lines.contains { line in
                let text = line.drop { " -#".contains($0) }
                guard text.hasPrefix("\(name):") else { return false }
                let value = text.dropFirst(name.count + 1).drop { $0 == " " }.prefix { $0 != " " }
                // A key without default is shown with an example, commented out.
                return initial.isEmpty ? line.contains("# ") : value == initial
            })
    }

    @Test("the sample still parses with its commented keys switched on")
    func sampleUncommented() throws {
        let text = try Self.lines(of: Self.samplePath).map { line -> String in
            let content = line.drop { $0 == " " }
            let names = [
                "tls", "proxy_from", "certificate", "key", "minimum_version",
                "client_certificates",
                "user_name_from_certificate", "password_file", "acl_file", "unix_socket",
                "tokens_file", "max_connect_packet", "queue_bytes", "unfinished_bytes", "webhook",
                "url", "secret_file", "ca_file", "timeout", "max_pause",
            ]
            let key = content.drop { $0 == "#" || $0 == " " }.prefix { $0 != ":" }
            return content.hasPrefix("# ") && names.contains { key == $0 }
                ? line.replacing("# ", with: "", maxReplacements: 1) : line
        }
        let configuration = try load(text.joined(separator: "\n"))
        #expect(configuration.listeners.first?.tls.certificates == ["/etc/hermes/tls.crt"])
        #expect(configuration.listeners.first?.tls.keys == ["/etc/hermes/tls.key"])
        #expect(configuration.listeners.first?.proxyFrom == ["10.0.0.0/8"])
        #expect(configuration.passwordFile == "/etc/hermes/users")
        #expect(configuration.aclFile == "/etc/hermes/acl")
        #expect(configuration.admin.tls.certificate == "/etc/hermes/admin.crt")
        #expect(configuration.admin.tls.key == "/etc/hermes/admin.key")
        #expect(configuration.admin.unixSocket == "/run/hermes/admin.sock")
        #expect(configuration.webhook.url == "https://office.example/hermes")
        #expect(configuration.webhook.secretFile == "/etc/hermes/webhook.secret")
        #expect(configuration.webhook.caFile == "/etc/hermes/office-ca.crt")
        #expect(configuration.limits == BrokerLimits())
    }

    @Test("the example for a company with tokens parses")
    func exampleOfTokens() throws {
        let path = Self.samplePath.replacing("hermes.yaml", with: "jwt.yaml")
        let configuration = try ConfigurationLoader(source: .file(path)).load()
        #expect(configuration.auth.jwt.jwksURL == "https://login.example/.well-known/jwks.json")
        #expect(configuration.auth.jwt.issuer == "https://login.example")
        #expect(configuration.auth.jwt.audience == ["hermes"])
        #expect(configuration.openDoors.isEmpty)
    }

    @Test("the example for a company with a service of its own parses")
    func exampleOfAService() throws {
        let path = Self.samplePath.replacing("hermes.yaml", with: "http-logins.yaml")
        let configuration = try ConfigurationLoader(source: .file(path)).load()
        #expect(configuration.auth.sources == [.file, .http])
        #expect(configuration.auth.http.url == "https://login.example/hermes")
        #expect(configuration.auth.http.whenUnavailable == .remembered)
        #expect(configuration.openDoors.isEmpty)
    }

    @Test("docs/configuration.md describes every key", arguments: Setting.all)
    func documented(setting: Setting) throws {
        let initial = setting.show(HermesConfiguration(), 0)
        let variable = setting.variable(at: 0).replacing("_0_", with: "_<n>_")
        let row =
            "| `\(setting.pattern)` | \(initial.isEmpty ? "not set" : "`\(initial)`") | \(setting.expectation) | `\(variable)` | \(setting.summary) |"
        let section = try Self.lines(of: Self.documentationPath).drop { $0 != "## Every key" }
        #expect(section.contains(row), "missing below \"Every key\": \(row)")
    }

    @Test("docs/configuration.md names every flag", arguments: Setting.all.compactMap(\.flag))
    func flagDocumented(flag: String) throws {
        let setting = try #require(Setting.all.first { $0.flag == flag })
        #expect(
            try Self.lines(of: Self.documentationPath).contains {
                $0.hasPrefix("| `\(flag)` | `\(setting.pattern)`")
            })
    }

    private static let root = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        .dropLast(3).joined(separator: "/")
    static let samplePath = root + "/Config/hermes.yaml"
    static let documentationPath = root + "/docs/configuration.md"

    private static func lines(of path: String) throws -> [String] {
        String(decoding: try ConfigurationFile.read(path), as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }
}
