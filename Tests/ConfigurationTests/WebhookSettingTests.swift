import Testing

@testable import OperatorConfiguration

@Suite("The webhook's settings")
struct WebhookSettingTests {
    private static let noURL =
        "webhook.url: the section has no URL, and nothing would be sent. Give the URL of the receiver, or delete webhook."
    private static let noSecret =
        "webhook.secret_file: the section has no secret, and a receiver could not tell the broker from others. Give the path of a file (openssl rand -hex 32), or delete webhook."

    @Test(
        "a part of the section is an error",
        arguments: ["", "{}", "{timeout: 1s}", "{allow_plain: true}", "{url: }"])
    func partial(text: String) {
        #expect(
            problems("webhook: \(text)\n")
                == ["hermes.yaml:1: \(Self.noURL)", "hermes.yaml:1: \(Self.noSecret)"])
    }

    @Test("URL and secret need each other")
    func halves() {
        #expect(
            problems("webhook: {url: \"https://a.example\"}\n")
                == ["hermes.yaml:1: \(Self.noSecret)"])
        #expect(
            problems(environment: ["HERMES_WEBHOOK_SECRET_FILE": "/a"])
                == ["HERMES_WEBHOOK_SECRET_FILE: \(Self.noURL)"])
    }

    @Test("empty variables, as a compose file leaves them, ask for no webhook")
    func emptyVariables() throws {
        let environment = ["HERMES_WEBHOOK_URL": "", "HERMES_WEBHOOK_SECRET_FILE": ""]
        #expect(try load("", environment: environment) == HermesConfiguration())
    }

    @Test(
        "URLs of http on loopback and of https anywhere",
        arguments: [
            "http://127.0.0.1:9000/a", "http://localhost", "http://[::1]:9000/",
            "https://a.example",
            "https://a.example:8443/b/c?d=e%2Ff&g", "https://192.0.2.7/", "https://[2001:db8::1]/",
            "https://a_b.example/(x)@y",
        ])
    func accepted(url: String) throws {
        let webhook = try load("webhook: {url: \"\(url)\", secret_file: /a}\n").webhook
        #expect(webhook.url == url)
    }

    @Test(
        "other texts are no URL",
        arguments: [
            "office.example", "ftp://office.example", "https:/office.example", "https://",
            "https://user@office.example", "https://user:word@office.example",
            "https://office.example/#part", "https://office.example:0", "https://office.example:",
            "https://office.example:99999", "https://office.example:80a", "https://[::1",
            "https://[]", "https://:80", "https://office.example/a b", "https://office.example/%2",
            "https://office.example/%zz", "https://office.example/ö", "https://öffice.example",
            "https://office.example/[a]", "https://office.example\\a",
            "https://office.example/\u{0D}",
        ])
    func refused(url: String) {
        #expect(WebURL(url) == nil)
    }

    @Test("a URL that is refused is named with its cure")
    func complaint() {
        #expect(
            problems("webhook: {url: office.example, secret_file: /a}\n") == [
                "hermes.yaml:1: webhook.url: \"office.example\" is no URL of http or https. Give a URL such as https://office.example/hermes, without user, password and fragment, and with any other byte percent-encoded."
            ])
    }

    @Test("plain HTTP to another machine takes an explicit word")
    func plain() throws {
        let yaml = "webhook: {url: \"http://office.example/a\", secret_file: /a"
        #expect(
            problems("\(yaml)}\n") == [
                "hermes.yaml:1: webhook.url: the events would be sent to another machine without TLS. Give a URL of https, or set webhook.allow_plain: true where the way is safe."
            ])
        #expect(try load("\(yaml), allow_plain: true}\n").webhook.allowPlain)
    }
}
