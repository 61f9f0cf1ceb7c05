import Testing

@testable import OperatorConfiguration

@Suite("Settings that contradict each other")
struct ContradictionTests {
    static let contradictions: [(yaml: String, problem: String)] = [
        (
            "listeners:\n  - port: 1883\n  - port: 1883\n",
            "hermes.yaml:3: listeners[1]: 127.0.0.1:1883 is taken by listeners[0] already. Give one of the two another port or address."
        ),
        (
            "listeners:\n  - {address: \"::1\"}\n  - {address: \"0:0:0:0:0:0:0:1\"}\n",
            "hermes.yaml:3: listeners[1]: [0:0:0:0:0:0:0:1]:1883 is taken by listeners[0] already. Give one of the two another port or address."
        ),
        (
            "listeners:\n  - {address: localhost}\n  - {address: 0.0.0.0, allow_anonymous: true}\n",
            "hermes.yaml:3: listeners[1]: 0.0.0.0:1883 is taken by listeners[0] already. Give one of the two another port or address."
        ),
        (
            "listeners:\n  - {}\n  - {}\n",
            "hermes.yaml:3: listeners[1]: 127.0.0.1:1883 is taken by listeners[0] already. Give one of the two another port or address."
        ),
        (
            "listeners:\n  - port: 8080\n",
            "hermes.yaml:2: listeners[0]: 127.0.0.1:8080 is where the admin API listens (admin.address, admin.port). Give one of the two another port."
        ),
        (
            "admin:\n  port: 1883\n",
            "hermes.yaml:2: listeners[0]: 127.0.0.1:1883 is where the admin API listens (admin.address, admin.port). Give one of the two another port."
        ),
        (
            "listeners:\n  - address: 0.0.0.0\n",
            "hermes.yaml:2: listeners[0].allow_anonymous: nobody can connect to 0.0.0.0:1883: beyond loopback a client needs a user name, and there are no users. Name users with password_file (hermesctl users add), or set allow_anonymous: true to let everyone in."
        ),
        (
            "listeners:\n  - port: 1\n    allow_anonymous: false\n",
            "hermes.yaml:3: listeners[0].allow_anonymous: nobody can connect to 127.0.0.1:1: anonymous clients are turned away, and there are no users. Name users with password_file (hermesctl users add), or set allow_anonymous: true to let everyone in."
        ),
        (
            "limits:\n  max_packet: 64KiB\n  max_connect_packet: 65KiB\n",
            "hermes.yaml:3: limits.max_connect_packet: 65KiB is more than limits.max_packet, 64KiB. Lower it, or raise limits.max_packet."
        ),
    ]

    @Test("are reported where they were set", arguments: contradictions)
    func reported(yaml: String, problem: String) {
        #expect(problems(yaml) == [problem])
    }

    @Test("blame the layer that brought them in")
    func blame() {
        #expect(
            problems(environment: ["HERMES_LISTENERS_0_ADDRESS": "192.0.2.1"]).first?
                .hasPrefix("HERMES_LISTENERS_0_ADDRESS: listeners[0].allow_anonymous:") == true)
        var overrides = CommandLineOverrides()
        overrides.ports = ["1883", "1883"]
        #expect(
            problems(overrides: overrides) == [
                "--port: listeners[1]: 127.0.0.1:1883 is taken by listeners[0] already. Give one of the two another port or address."
            ])
        overrides = CommandLineOverrides()
        overrides.maxPacket = "1KiB"
        #expect(
            problems("limits:\n  max_connect_packet: 2KiB\n", overrides: overrides).first?
                .hasPrefix("hermes.yaml:2: limits.max_connect_packet: 2KiB is more") == true)
    }

    @Test(
        "are not seen where there are none",
        arguments: [
            "listeners: [{port: 0}, {port: 0}]\nadmin: {port: 0}",
            "listeners: [{address: 127.0.0.1}, {address: 127.0.0.2}, {address: \"::1\"}]",
            "listeners: [{address: 0.0.0.0}]\npassword_file: users",
            "listeners: [{address: \"::\", allow_anonymous: true}]",
            "listeners: [{allow_anonymous: false}]\npassword_file: users",
            "limits: {max_packet: 64KiB}",
            "limits: {queue_bytes: 64KiB}",
        ])
    func absent(yaml: String) {
        #expect(problems(yaml) == [])
    }

    @Test("are not derived from a value that was refused itself")
    func noCascade() {
        #expect(
            problems("listeners:\n  - port: 8080\n  - port: x\nadmin: {port: y}").count == 2)
        #expect(
            problems("listeners: [{address: 0.0.0.0, allow_anonymous: maybe}]").count == 1)
        #expect(problems("listeners: [{address: 0.0.0.0}]\npassword_file: ~/x").count == 1)
    }

    @Test("limits derived from max_packet fit it unless they are set")
    func derivedLimits() throws {
        let small = try load("limits: {max_packet: 64KiB}").limits
        #expect(small.maxConnectPacketBytes == 64 * 1024)
        #expect(small.queueBytes == 8 << 20)
        let large = try load("limits: {max_packet: 256MiB}").limits
        #expect(large.maxConnectPacketBytes == 330 * 1024)
        #expect(large.queueBytes == 256 << 20)
        #expect(
            try load("limits: {max_packet: 256MiB, queue_bytes: 1MiB}").limits.queueBytes
                == 1 << 20)
    }
}
