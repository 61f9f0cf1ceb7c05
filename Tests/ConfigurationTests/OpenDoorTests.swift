import Testing

@testable import OperatorConfiguration

@Suite("What is open to other machines")
struct OpenDoorTests {
    private static func doors(_ yaml: String) throws -> [String] {
        let loader = ConfigurationLoader(source: .text(yaml, name: "hermes.yaml"))
        return try loader.load().openDoors.map(\.description)
    }

    @Test(
        "nothing is open by default, on loopback, or behind users, rules and TLS",
        arguments: [
            "{}", "listeners: [{allow_anonymous: true}]",
            "listeners: [{address: '::1', port: 1884}]",
            """
            password_file: users
            acl_file: acl
            listeners: [{address: 0.0.0.0, port: 8883, tls: {certificate: c.pem, key: k.pem}}]
            admin: {address: 0.0.0.0, tls: {certificate: c.pem, key: k.pem}}
            """,
            """
            password_file: users
            acl_file: acl
            listeners: [{address: 0.0.0.0, port: 1883, proxy_from: [10.0.0.0/8]}]
            """,
        ])
    func closed(yaml: String) throws { #expect(try Self.doors(yaml) == []) }

    @Test("each open door is named with its key and how to close it")
    func open() throws {
        let anonymous = try Self.doors(
            """
            listeners: [{}, {address: 0.0.0.0, port: 1884, allow_anonymous: true}]
            """)
        #expect(
            anonymous == [
                "listeners[1]: 0.0.0.0 lets in everybody without a user name, to publish to every topic and read all of them. Set allow_anonymous: false and give a password_file, or listen on 127.0.0.1.",
                "listeners[1]: 0.0.0.0 speaks plain TCP, so messages cross the network unencrypted. Give it tls.certificate and tls.key.",
            ])
        let users = try Self.doors(
            """
            password_file: users
            listeners: [{address: 192.0.2.1, port: 1883}]
            admin: {address: "::", allow_plain: true}
            """)
        #expect(
            users == [
                "listeners[0]: 192.0.2.1 speaks plain TCP, so messages and passwords cross the network unencrypted. Give it tls.certificate and tls.key.",
                "acl_file: there are no access rules, so each user may publish to every topic and read all of them. Give an ACL file, as docs/security.md describes.",
                "admin.allow_plain: the HTTP API speaks plain HTTP on ::, so its tokens cross the network unencrypted. Give admin.tls.certificate and admin.tls.key, or listen on 127.0.0.1.",
            ])
        let rules = try Self.doors(
            """
            acl_file: acl
            listeners:
              - {address: 0.0.0.0, allow_anonymous: true, tls: {certificate: c.pem, key: k.pem}}
            """)
        #expect(
            rules == [
                "listeners[0]: 0.0.0.0 lets in everybody without a user name. Set allow_anonymous: false and give a password_file, or listen on 127.0.0.1."
            ])
    }
}
