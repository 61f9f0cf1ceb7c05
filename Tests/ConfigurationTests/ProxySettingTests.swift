import Testing

@testable import OperatorConfiguration

@Suite("Proxies in front of a listener")
struct ProxySettingTests {
    private static func yaml(_ value: String) -> String {
        "listeners:\n  - allow_anonymous: true\n    proxy_from: \(value)\n"
    }

    @Test(
        "are addresses and networks, as a text or as a list",
        arguments: [
            ("10.0.0.0/8", ["10.0.0.0/8"]),
            ("\"10.0.0.0/8, ::1\"", ["10.0.0.0/8", "::1"]),
            (
                "[127.0.0.1, \"fd00::/8\", 0.0.0.0/0, \"::/0\"]",
                ["127.0.0.1", "fd00::/8", "0.0.0.0/0", "::/0"]
            ),
            ("192.0.2.7/32", ["192.0.2.7/32"]),
            ("\"2001:db8::/33\"", ["2001:db8::/33"]),
        ]
    )
    func networks(value: String, expected: [String]) throws {
        #expect(try load(Self.yaml(value)).listeners[0].proxyFrom == expected)
    }

    @Test(
        "that are none are refused, with a cure",
        arguments: [
            (
                "localhost",
                "localhost is neither an address nor a network. Give 127.0.0.1, ::1, 10.0.0.0/8, fd00::/8 or the like."
            ),
            (
                "10.0.0/8",
                "\"10.0.0/8\" is neither an address nor a network. Give 127.0.0.1, ::1, 10.0.0.0/8, fd00::/8 or the like."
            ),
            (
                "10.0.0.0/33",
                "\"10.0.0.0/33\" does not end in a number of bits. Give 0 to 32 behind the /."
            ),
            (
                "10.0.0.0/",
                "\"10.0.0.0/\" does not end in a number of bits. Give 0 to 32 behind the /."
            ),
            (
                "10.0.0.0/+8",
                "\"10.0.0.0/+8\" does not end in a number of bits. Give 0 to 32 behind the /."
            ),
            (
                "\"::1/129\"",
                "\"::1/129\" does not end in a number of bits. Give 0 to 128 behind the /."
            ),
            (
                "10.1.2.3/8",
                "\"10.1.2.3/8\" has bits set behind the first 8. Write 10.0.0.0/8 for the network, or 10.1.2.3 for the address alone."
            ),
            (
                "\"2001:db8:ffff::1/33\"",
                "\"2001:db8:ffff::1/33\" has bits set behind the first 33. Write 2001:db8:8000::/33 for the network, or 2001:db8:ffff::1 for the address alone."
            ),
        ]
    )
    func refused(value: String, problem: String) {
        #expect(
            problems(Self.yaml(value))
                == ["hermes.yaml:3: listeners[0].proxy_from: \(problem)"])
    }

    @Test("need a value, because without them a loopback listener admits anonymous clients")
    func empty() {
        for value in ["", "[]", "\"\""] {
            let found = problems(Self.yaml(value))
            #expect(found.count == 1)
            #expect(found.first?.hasPrefix("hermes.yaml:3: listeners[0].proxy_from: ") == true)
            #expect(found.first?.contains("Give ") == true, "\(found)")
        }
    }

    @Test("in an item with a comma are an error")
    func comma() {
        #expect(
            problems(Self.yaml("[\"10.0.0.0/8,::1\"]")) == [
                "hermes.yaml:3: listeners[0].proxy_from: an item of the list holds a comma. Make two items of it, or rename the file."
            ])
    }

    @Test("end the admission of anonymous clients on loopback")
    func anonymous() throws {
        let problem =
            "hermes.yaml:2: listeners[0].allow_anonymous: nobody can connect to 127.0.0.1:1883: behind a proxy a client needs a user name, and there are no users. Name users with password_file (hermesctl users add), or set allow_anonymous: true to let everyone in."
        #expect(problems("listeners:\n  - proxy_from: 127.0.0.1\n") == [problem])
        let open = try load(Self.yaml("127.0.0.1"))
        #expect(open.allowsAnonymous(on: open.listeners[0]))
        let guarded = try load(
            "password_file: users\nlisteners:\n  - proxy_from: 127.0.0.1\n")
        #expect(!guarded.allowsAnonymous(on: guarded.listeners[0]))
    }
}
