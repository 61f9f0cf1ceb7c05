import Testing

@testable import OperatorConfiguration

@Suite("Settings of logins")
struct AuthSettingTests {
    private func jwt(_ text: String) -> String { "auth: {jwt: {\(text)}}\n" }

    @Test("a key turns tokens on, and nobody is anonymous any more")
    func on() throws {
        #expect(!HermesConfiguration().auth.jwt.isOn)
        let configuration = try load(jwt("key_file: /a, audience: [hermes, shop], leeway: 0"))
        #expect(configuration.auth.jwt.isOn)
        #expect(configuration.auth.jwt.audience == ["hermes", "shop"])
        #expect(configuration.auth.jwt.leeway == .zero)
        #expect(!configuration.allowsAnonymous(on: configuration.listeners[0]))
        #expect(try load(jwt("leeway: 1s")).allowsAnonymous(on: configuration.listeners[0]))
    }

    @Test(
        "one place of keys",
        arguments: [
            "key_file: /a, secret_file: /b", "jwks_file: /a, key_file: /b",
            "jwks_url: \"https://a.example\", jwks_file: /b",
        ])
    func onePlace(text: String) {
        let found = problems(jwt(text))
        #expect(found.count == 1)
        #expect(found[0].contains("and only one is used"), "\(found)")
    }

    @Test(
        "what a token must say needs a key",
        arguments: ["issuer: a", "audience: a", "ca_file: /a", "issuer: a, leeway: 5s"])
    func needsKey(text: String) {
        let found = problems(jwt(text))
        #expect(found.count == 1)
        #expect(found[0].contains("there is no key that tokens could be verified with"), "\(found)")
    }

    @Test("a URL of another machine needs TLS or an explicit word")
    func plain() throws {
        let text = "jwks_url: \"http://login.example/keys\""
        let found = problems(jwt(text))
        #expect(found.count == 1)
        #expect(found[0].contains("without TLS, where others could change them"), "\(found)")
        #expect(try load(jwt("\(text), allow_plain: true")).auth.jwt.allowPlain)
        #expect(try load(jwt("jwks_url: \"http://127.0.0.1:9/keys\"")).auth.jwt.isOn)
    }

    @Test(
        "sources",
        arguments: [
            ("jwt", [HermesConfiguration.Auth.Source.jwt]), ("file", [.file]),
            ("[file, jwt]", [.file, .jwt]), ("jwt,file", [.jwt, .file]),
            ("http,file", [.http, .file]),
        ])
    func sources(text: String, expected: [HermesConfiguration.Auth.Source]) throws {
        #expect(try load("auth:\n  sources: \(text)\n").auth.sources == expected)
    }

    @Test("certificates come first, unless they have a place of their own")
    func order() throws {
        let tls =
            "listeners:\n  - tls:\n      certificate: /a\n      key: /b\n"
            + "      client_certificates: required\n      client_ca_file: /c\n"
            + "      user_name_from_certificate: true\n"
        let http = "  http:\n    url: https://login.example/\n"
        for (sources, order, asksBefore) in [
            ("[http, file]", [.certificate, .http, .file], false),
            ("[certificate, http]", [.certificate, .http], false),
            ("[http, certificate]", [.http, .certificate], true),
            // No file and no keys of tokens are set up.
            ("[file, jwt, certificate, http]", [.file, .jwt, .certificate, .http], false),
        ] as [(String, [HermesConfiguration.Auth.Source], Bool)] {
            let configuration = try load("\(tls)auth:\n  sources: \(sources)\n\(http)")
            #expect(configuration.auth.order == order)
            #expect(configuration.asksBeforeCertificates == asksBefore, "\(sources)")
        }
        #expect(
            problems("auth:\n  sources: [http, certificate]\n\(http)") == [
                "hermes.yaml:2: auth.sources: no listener takes the names of users from their certificates. Set tls.user_name_from_certificate: true of a listener, or delete certificate."
            ])
    }

    @Test("wrong sources", arguments: ["ldap", "jwt,jwt", "[]", "''"])
    func wrongSources(text: String) {
        #expect(problems("auth:\n  sources: \(text)\n").count == 1)
    }

    @Test("what is set up is asked")
    func asked() {
        #expect(
            problems("auth: {sources: file, jwt: {key_file: /a}}\n").first?
                .contains("nobody asks for them") == true)
        #expect(
            problems("auth: {sources: jwt, jwt: {key_file: /a}}\npassword_file: /b\n").first?
                .contains("nobody looks into it") == true)
    }

    @Test(
        "values out of their range are refused",
        arguments: [
            "key_file: /a, leeway: 301s", "key_file: /a, leeway: 500ms",
            "key_file: /a, user_claim: ''",
            "key_file: /a, expired: maybe", "key_file: /a, user_name: any", "key_file: ",
            "key_file: /a, audience: ", "key_file: /a, issuer: ''", "key_file: /a, refresh: 1s",
            "jwks_url: ftp://a",
        ])
    func refused(text: String) {
        #expect(problems(jwt(text)).count == 1, "\(problems(jwt(text)))")
    }

    @Test("what a token must be is reloaded, the place of its keys is not")
    func reload() {
        for setting in Setting.authSettings {
            let name = setting.pattern.split(separator: ".").last ?? ""
            let isPlace = [
                "sources", "key_file", "secret_file", "jwks_file", "jwks_url", "ca_file",
                "refresh", "allow_plain",
            ].contains(name)
            #expect(setting.isReloadable != isPlace, "\(setting.pattern)")
        }
    }
}
