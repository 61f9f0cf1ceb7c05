import Testing

@testable import OperatorConfiguration

@Suite("The HTTP API's TLS")
struct AdminTLSSettingTests {
    private static let noCertificate =
        "admin.tls.certificate: the section has no certificate, and an API that was meant to be safe does not speak plain HTTP. Give the path of a PEM file, or delete admin.tls."
    private static let noKey =
        "admin.tls.key: the section has no key. Give the path of the certificate's private key, or delete admin.tls."

    @Test("a certificate and its key turn it on")
    func on() throws {
        let admin = try load("admin: {tls: {certificate: /a.crt, key: /a.key}}\n").admin
        #expect(admin.tls.isOn)
        #expect(!HermesConfiguration().admin.tls.isOn)
    }

    @Test(
        "a part of the section is an error and never plain HTTP",
        arguments: ["tls:", "tls: {}", "tls: {minimum_version: 1.3}", "tls: {certificate: }"])
    func partial(text: String) {
        #expect(
            problems("admin:\n  \(text)\n")
                == ["hermes.yaml:2: \(Self.noCertificate)", "hermes.yaml:2: \(Self.noKey)"])
    }

    @Test("a certificate without its key is an error, and so is a key without its certificate")
    func halves() {
        #expect(
            problems("admin:\n  tls: {certificate: /a.crt}\n") == ["hermes.yaml:2: \(Self.noKey)"])
        #expect(
            problems(environment: ["HERMES_ADMIN_TLS_KEY": "/a.key"])
                == ["HERMES_ADMIN_TLS_KEY: \(Self.noCertificate)"])
    }

    @Test("empty variables, as a compose file leaves them, ask for no TLS")
    func emptyVariables() throws {
        let environment = ["HERMES_ADMIN_TLS_CERTIFICATE": "", "HERMES_ADMIN_TLS_KEY": ""]
        #expect(try load("", environment: environment) == HermesConfiguration())
    }

    @Test(
        "an address that others reach takes TLS, or an explicit word",
        arguments: ["0.0.0.0", "\"::\"", "192.0.2.7", "\"::ffff:192.0.2.7\""])
    func beyondLoopback(address: String) throws {
        #expect(
            problems("admin:\n  port: 1\n  address: \(address)\n") == [
                "hermes.yaml:3: admin.address: the HTTP API would be spoken without TLS on an address that other machines reach, and its tokens with it. Give admin.tls.certificate and admin.tls.key, listen on 127.0.0.1, or set admin.allow_plain: true where the way is safe."
            ])
        for addition in ["allow_plain: true", "tls: {certificate: /a, key: /b}"] {
            #expect(problems("admin:\n  \(addition)\n  address: \(address)\n").isEmpty)
        }
    }

    @Test("on loopback plain HTTP needs no word", arguments: ["127.0.0.9", "\"::1\"", "localhost"])
    func loopback(address: String) {
        #expect(problems("admin: {address: \(address)}\n").isEmpty)
    }
}
