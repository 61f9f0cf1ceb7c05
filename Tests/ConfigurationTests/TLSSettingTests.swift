import Testing

@testable import OperatorConfiguration

@Suite("The tls section of a listener")
struct TLSSettingTests {
    @Test("takes certificates and keys as texts or as lists")
    func lists() throws {
        let configuration = try load(
            """
            listeners:
              - tls:
                  certificate: [/a.crt, /b.crt]
                  key: /a.key, /b.key
            """)
        let tls = try #require(configuration.listeners.first?.tls)
        #expect(tls.isOn)
        #expect(tls.certificates == ["/a.crt", "/b.crt"])
        #expect(tls.keys == ["/a.key", "/b.key"])
    }

    @Test(
        "a part of it is an error and never a plain listener",
        arguments: [
            "tls:", "tls: {}", "tls: {minimum_version: 1.2}", "tls: {certificate: }",
        ])
    func partial(text: String) {
        #expect(
            problems("listeners:\n  - \(text)\n") == [
                "hermes.yaml:2: listeners[0].tls.certificate: the section has no certificate, and a listener that was meant to be safe does not serve plain TCP. Give the path of a PEM file, or delete listeners[0].tls.",
                "hermes.yaml:2: listeners[0].tls.key: the section has no key. Give the path of the certificate's private key, or delete listeners[0].tls.",
            ])
    }

    @Test("a certificate without its key is an error, and so is a key without its certificate")
    func halves() {
        #expect(
            problems("listeners:\n  - tls: {certificate: /a.crt}\n") == [
                "hermes.yaml:2: listeners[0].tls.key: the section has no key. Give the path of the certificate's private key, or delete listeners[0].tls."
            ])
        #expect(
            problems(environment: ["HERMES_LISTENERS_0_TLS_KEY": "/a.key"]) == [
                "HERMES_LISTENERS_0_TLS_KEY: listeners[0].tls.certificate: the section has no certificate, and a listener that was meant to be safe does not serve plain TCP. Give the path of a PEM file, or delete listeners[0].tls."
            ])
    }

    @Test("empty variables, as a compose file leaves them, ask for no TLS")
    func emptyVariables() throws {
        let configuration = try load(
            "",
            environment: [
                "HERMES_LISTENERS_0_TLS_CERTIFICATE": "", "HERMES_LISTENERS_0_TLS_KEY": "",
            ])
        #expect(configuration == HermesConfiguration())
    }

    @Test("every certificate needs a key of its own")
    func counts() {
        #expect(
            problems("listeners:\n  - tls:\n      certificate: [/a, /b]\n      key: /c\n") == [
                "hermes.yaml:4: listeners[0].tls.key: 1 keys stand beside 2 certificates. Give one key for each certificate, in the same order."
            ])
    }

    @Test("files for clients' certificates without a rule for them are an error")
    func pointless() {
        let yaml =
            "listeners:\n  - tls:\n      certificate: /a\n      key: /b\n      crl_file: /c\n"
        #expect(
            problems(yaml) == [
                "hermes.yaml:5: listeners[0].tls.crl_file: it has no effect while clients show no certificates. Set client_certificates to required or optional, or delete the key."
            ])
    }

    @Test("client certificates need an authority")
    func issuer() {
        let yaml =
            "listeners:\n  - tls:\n      certificate: /a\n      key: /b\n      client_certificates: required\n"
        #expect(
            problems(yaml) == [
                "hermes.yaml:5: listeners[0].tls.client_ca_file: nobody is named who may issue the certificates of clients. Give the path of a PEM file, or set client_certificates: off."
            ])
    }

    @Test("certificates that name users are users: an address beyond loopback needs no others")
    func users() {
        func yaml(_ rule: String, _ takesNames: Bool) -> String {
            "listeners:\n  - address: 0.0.0.0\n    tls:\n      certificate: /a\n      key: /b\n"
                + "      client_ca_file: /c\n      client_certificates: \(rule)\n"
                + "      user_name_from_certificate: \(takesNames)\n"
        }
        #expect(problems(yaml("required", true)).isEmpty)
        #expect(problems(yaml("required", false)).count == 1)
        #expect(problems(yaml("optional", true)).count == 1)
    }

    @Test("listeners that --port adds speak TLS like the first")
    func ports() throws {
        var overrides = CommandLineOverrides()
        overrides.ports = ["8883", "8884"]
        let configuration = try load(
            "listeners:\n  - tls: {certificate: /a, key: /b}\n", overrides: overrides)
        #expect(configuration.listeners.map(\.tls.isOn) == [true, true])
    }
}
