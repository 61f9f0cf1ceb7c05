import Glibc
import Testing

@testable import OperatorConfiguration

@Suite("Layers of the configuration")
struct LayerTests {
    @Test("environment variables change listeners of the file and add the next ones")
    func listenersByEnvironment() throws {
        let configuration = try load(
            "listeners: [{port: 1}, {port: 2}]",
            environment: [
                "HERMES_LISTENERS_1_PORT": "22",
                "HERMES_LISTENERS_2_ADDRESS": "::1",
                "HERMES_LISTENERS_3_PORT": "44",
            ])
        #expect(configuration.listeners.map(\.port) == [1, 22, 1883, 44])
        #expect(configuration.listeners.map(\.address).filter { $0 == "::1" }.count == 1)
    }

    @Test("eleven listeners by environment keep their numbers")
    func numericOrder() throws {
        let variables = (0...10).map { ("HERMES_LISTENERS_\($0)_PORT", "\(2_000 + $0)") }
        let configuration = try load(
            "", environment: Dictionary(uniqueKeysWithValues: variables))
        #expect(configuration.listeners.map(\.port) == (2_000...2_010).map { UInt16($0) })
    }

    static let variables: [(name: String, value: String, problem: String)] = [
        (
            "HERMES_LISTENERS_2_PORT", "1",
            "listeners[2].port: there is no listeners[1], and listeners are numbered without gaps. Name listener 1 next (HERMES_LISTENERS_1_PORT)."
        ),
        (
            "HERMES_LIMITS_MAX_INFLIGHT", "1",
            "unknown variable. Did you mean HERMES_LIMITS_MAX_IN_FLIGHT?"
        ),
        (
            "HERMES_LISTENERS_1_PROT", "1",
            "unknown variable. Did you mean HERMES_LISTENERS_1_PORT?"
        ),
        (
            "HERMES_COLOUR_SCHEME_AND_FONT", "1",
            "unknown variable. Unset it. Names are HERMES_ and the key in capitals, with _ for each dot."
        ),
        (
            "HERMES_ADMIN_PORT", "tcp://10.0.0.7:8080",
            "admin.port: \"tcp://10.0.0.7:8080\" is an address that Kubernetes sets for a service of this name. Set enableServiceLinks: false in the pod, or rename the service."
        ),
    ]

    @Test("a wrong variable is named with its cure", arguments: variables)
    func wrongVariable(name: String, value: String, problem: String) {
        #expect(problems(environment: [name: value]) == ["\(name): \(problem)"])
    }

    @Test("no more listeners by environment than by the file")
    func listenerBound() {
        let variables = (0...64).map { ("HERMES_LISTENERS_\($0)_PORT", "\(2_000 + $0)") }
        #expect(
            problems(environment: Dictionary(uniqueKeysWithValues: variables)) == [
                "HERMES_LISTENERS_64_PORT: listeners[64].port: there are more than 64 listeners. Number them 0 to 63."
            ])
        let items = (0...64).map { "{port: \(2_000 + $0)}" }.joined(separator: ", ")
        #expect(
            problems("listeners: [\(items)]") == [
                "hermes.yaml:1: listeners: the list holds 65 listeners, more than 64. Delete some."
            ])
        var overrides = CommandLineOverrides()
        overrides.ports = (0...64).map { "\($0)" }
        #expect(
            problems(overrides: overrides) == [
                "--port: 65 ports are more than the 64 listeners there may be. Give fewer ports."
            ])
    }

    @Test("variables of other parts, of Kubernetes and of other programs are left alone")
    func foreignVariables() {
        #expect(
            problems(environment: [
                "HERMES_ADMIN_TOKEN": "secret", "HERMESCTL_URL": "x", "hermes_port": "y",
                "HERMES_SERVICE_HOST": "10.0.0.7", "HERMES_SERVICE_PORT": "1883",
                "HERMES_SERVICE_PORT_MQTT": "1883", "HERMES_PORT": "tcp://10.0.0.7:1883",
                "HERMES_PORT_1883_TCP": "tcp://10.0.0.7:1883",
                "HERMES_PORT_1883_TCP_ADDR": "10.0.0.7",
                "HERMES_ADMIN_SERVICE_HOST": "10.0.0.8",
                "HERMES_ADMIN_PORT_8080_TCP_PROTO": "tcp",
            ]) == [])
        #expect(problems(environment: ["HERMES_PORT": "1883"]).count == 1)
    }

    @Test("ports of the command line replace those of the listeners")
    func ports() throws {
        let yaml = """
            listeners:
              - {address: "::1", port: 1}
              - {address: 127.0.0.2, port: 2}
            """
        var overrides = CommandLineOverrides()
        overrides.ports = ["11"]
        let one = try load(yaml, overrides: overrides)
        #expect(one.listeners.map(\.address) == ["::1"])
        #expect(one.listeners.map(\.port) == [11])
        overrides.ports = ["0", "0", "33"]
        let three = try load(yaml, overrides: overrides)
        #expect(three.listeners.map(\.address) == ["::1", "127.0.0.2", "::1"])
        #expect(three.listeners.map(\.port) == [0, 0, 33])
    }

    @Test("--allow-anonymous opens every listener, also those that --port adds")
    func allowAnonymous() throws {
        var overrides = CommandLineOverrides()
        overrides.ports = ["1", "2"]
        overrides.allowAnonymous = true
        let configuration = try load("listeners: [{address: 0.0.0.0}]", overrides: overrides)
        #expect(configuration.listeners.map(configuration.allowsAnonymous(on:)) == [true, true])
    }

    @Test("an alias repeats a value, and too many are refused before they unfold")
    func aliases() throws {
        let configuration = try load(
            "admin: {address: &a 127.0.0.2}\nlisteners: [{address: *a}]")
        #expect(configuration.listeners[0].address == "127.0.0.2")

        // Each level doubles the former; hashing it as a key would visit all 2^40 parts.
        let levels = (1...40).map { "- &x\($0) [*x\($0 - 1), *x\($0 - 1)]" }
        let bomb = (["- &x0 lol"] + levels + ["- ? *x40\n  : 1"]).joined(separator: "\n")
        #expect(
            problems(bomb) == [
                "hermes.yaml:10: holds more than 16 aliases. Write the values out."
            ])
        let comments = (1...40).map { "# a *b &c \($0)" }.joined(separator: "\n")
        #expect(problems("orders: {qos: 1} #\n\(comments.replacing("&", with: ""))") == [])
    }

    @Test(
        "deep nesting ends in an error, not in an exhausted stack", arguments: ["[", "{a: ", "- "])
    func nesting(opener: String) {
        let found = problems(String(repeating: opener, count: 20_000))
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix("hermes.yaml") == true)
    }

    @Test("any cut of the sample is accepted or refused with a reason, never a crash")
    func cuts() throws {
        let bytes = try ConfigurationFile.read(DocumentationTests.samplePath)
        for end in stride(from: 0, to: bytes.count, by: 7) {
            var draft = ConfigurationDraft()
            FileLayer(name: "hermes.yaml").apply(Array(bytes[..<end]), to: &draft)
            if let error = draft.problems.error {
                #expect(error.problems.allSatisfy { $0.description.contains("hermes.yaml") })
            }
        }
    }

    @Test("the process environment is readable")
    func processEnvironment() {
        let value = getenv("PATH").map { String(cString: $0) }
        #expect(ProcessEnvironment.current()["PATH"] == value)
    }
}

@Suite("The configuration file on disk")
struct ConfigurationFileTests {
    private func problem(at path: String) -> String? {
        do {
            _ = try ConfigurationLoader(source: .file(path)).load()
            return nil
        } catch {
            return error.description
        }
    }

    @Test("names a file that is missing, a folder, a device and a broken path")
    func unreadable() {
        #expect(
            problem(at: "/nonexistent/hermes.yaml")
                == "/nonexistent/hermes.yaml: cannot open the file: no such file (ENOENT). Correct the path, or write the file; a broker without --config runs with the built-in settings."
        )
        #expect(
            problem(at: "/tmp")
                == "/tmp: this is a folder. Give --config the path of a YAML file.")
        #expect(
            problem(at: "/dev/zero")
                == "/dev/zero: this is not a regular file. Give --config the path of a YAML file.")
        #expect(problem(at: "/dev/null/x")?.contains("ENOTDIR") == true)
        #expect(problem(at: "")?.contains("is empty") == true)
        #expect(problem(at: "a\0b")?.hasPrefix("a\\u{0}b: the path") == true)
    }

    @Test("is refused with a line that it has, also when its last line has no end")
    func lastLine() throws {
        let file = try TemporaryFile(Array("{".utf8))
        #expect(
            problem(at: file.path)?.hasPrefix("\(file.path):1: the YAML cannot be read") == true)
    }

    @Test("is refused above 1 MiB and as anything but UTF-8, with the line")
    func contents() throws {
        let large = try TemporaryFile(Array(repeating: UInt8(ascii: "#"), count: (1 << 20) + 1))
        #expect(
            problem(at: large.path)?.hasSuffix(
                ": the file is larger than 1MiB. Give --config the path of a YAML file.") == true)
        let full = try TemporaryFile(Array(repeating: UInt8(ascii: "#"), count: 1 << 20))
        #expect(problem(at: full.path) == nil)
        let latin = try TemporaryFile(Array("# Gr".utf8) + [0x0A, 0xFC, 0x0A])
        #expect(
            problem(at: latin.path)
                == "\(latin.path):2: holds bytes that are not UTF-8. Save the file as UTF-8 text.")
        let marked = try TemporaryFile([0xEF, 0xBB, 0xBF] + Array("durability: none\r\n".utf8))
        #expect(problem(at: marked.path) == nil)
        let commented = try TemporaryFile(
            [0xEF, 0xBB, 0xBF] + Array("# Edited\n---\ndurability: none\nlisteners: []\n".utf8))
        // libyaml counts on: the mark is no part of a line.
        #expect(problem(at: commented.path)?.hasPrefix("\(commented.path):4: listeners: ") == true)
    }

    /// A file that is removed at the end of the test.
    private final class TemporaryFile {
        let path: String

        init(_ bytes: [UInt8]) throws {
            var template = Array("/tmp/hermes-configuration-XXXXXX".utf8CString)
            let descriptor = mkstemp(&template)
            try #require(descriptor >= 0)
            path = String(
                decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let written = write(descriptor, bytes, bytes.count)
            _ = close(descriptor)
            try #require(written == bytes.count)
        }

        deinit { _ = unlink(path) }
    }
}

@Suite("Addresses of listeners")
struct ListenerAddressTests {
    @Test(
        "loopback is recognised in every spelling",
        arguments: [
            ("127.0.0.1", true), ("127.255.0.9", true), ("localhost", true), ("::1", true),
            ("0:0:0:0:0:0:0:1", true), ("::ffff:127.0.0.1", true), ("0.0.0.0", false),
            ("::", false), ("10.0.0.1", false), ("::ffff:10.0.0.1", false), ("1.0.0.127", false),
            ("fe80::1", false), ("not an address", false), ("127.0.0.1\0", false), ("", false),
        ])
    func loopback(address: String, isLoopback: Bool) {
        var listener = HermesConfiguration.Listener()
        listener.address = address
        #expect(listener.isLoopback == isLoopback)
        var configuration = HermesConfiguration()
        #expect(configuration.allowsAnonymous(on: listener) == isLoopback)
        listener.allowAnonymous = true
        #expect(configuration.allowsAnonymous(on: listener))
        listener.allowAnonymous = false
        #expect(!configuration.allowsAnonymous(on: listener))

        // With users, anonymous clients are rejected even on loopback, unless allowed explicitly.
        configuration.passwordFile = "users"
        listener.allowAnonymous = nil
        #expect(!configuration.allowsAnonymous(on: listener))
        listener.allowAnonymous = true
        #expect(configuration.allowsAnonymous(on: listener))
    }
}
