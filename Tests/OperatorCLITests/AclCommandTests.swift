import Testing

@testable import OperatorCLI

@Suite("acl check")
struct AclCommandTests {
    private static let file = """
        # rights
        deny  user mallory both      #
        allow user *       subscribe orders/%u/#
        allow anonymous    publish   "in box/+"
        """

    private func check(_ arguments: [String]) async throws -> Run {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.file, to: "acl")
        let ran = try await run(["acl", "check", "--file", path] + arguments)
        return Run(
            exitCode: ran.exitCode, output: ran.output.replacing(path, with: "acl"),
            errors: ran.errors, requests: ran.requests)
    }

    @Test("prints the deciding rule, and exits with the decision")
    func verdicts() async throws {
        let allowed = try await check(["anna", "c1", "subscribe", "orders/anna/7"])
        #expect(allowed.exitCode == 0)
        #expect(allowed.output == "allowed by acl:3: allow user * subscribe orders/%u/#\n")
        let denied = try await check(["mallory", "c1", "subscribe", "orders/mallory/7"])
        #expect(denied.exitCode == 1)
        #expect(denied.output == "denied by acl:2: deny user mallory both #\n")
        let unfitting = try await check(["anna", "c1", "publish", "orders/anna/7"])
        #expect(unfitting.exitCode == 1)
        #expect(unfitting.output == "denied by acl: no rule fits\n")
        let anonymous = try await check(["-", "c1", "publish", "in box/a"])
        #expect(anonymous.exitCode == 0)
        #expect(anonymous.output == "allowed by acl:4: allow anonymous publish \"in box/+\"\n")
        let part = try await check(["anna", "c1", "subscribe", "orders/#"])
        #expect(part.exitCode == 0)
        #expect(part.output.hasPrefix("allowed in part, by acl:3: "))
        let shared = try await check(["anna", "c1", "subscribe", "$share/g/orders/anna/#"])
        #expect(shared.output.hasPrefix("allowed by acl:3: "))
    }

    @Test("--json says the same")
    func json() async throws {
        let part = try await check(["anna", "c1", "subscribe", "#", "--json"])
        #expect(
            part.output == """
                {"allowed":"part","rule":{"file":"acl","line":3,\
                "text":"allow user * subscribe orders/%u/#"}}

                """)
        let denied = try await check(["-", "c1", "subscribe", "#", "--json"])
        #expect(denied.exitCode == 1)
        #expect(denied.output == "{\"allowed\":\"nothing\"}\n")
    }

    @Test(
        "publishing to the broker's own topics is denied, whatever the rules say",
        arguments: ["$SYS", "$SYS/x", "$CONTROL", "$CONTROL/a/b"])
    func closedTopics(topic: String) async throws {
        let folder = try TemporaryFolder()
        let acl = try folder.write("allow user * both $SYS/#\nallow user * both #\n", to: "acl")
        let ask = { action in ["acl", "check", "--file", acl, "anna", "c1", action, topic] }
        let plain = try await run(ask("publish"))
        #expect(plain.exitCode == 1)
        #expect(plain.output.hasPrefix("denied: ") && plain.output.contains("the broker's own"))
        let json = try await run(ask("publish") + ["--json"])
        #expect(json.exitCode == 1)
        #expect(json.output == "{\"allowed\":\"nothing\"}\n")
        let read = try await run(ask("subscribe"))
        #expect(read.exitCode == (topic.hasPrefix("$SYS") ? 0 : 1))
    }

    @Test("names that only begin like them follow the rules")
    func openTopics() async throws {
        let folder = try TemporaryFolder()
        let acl = try folder.write("allow user * publish $SYSTEM\n", to: "acl")
        let ran = try await run(
            ["acl", "check", "--file", acl, "anna", "c1", "publish", "$SYSTEM"])
        #expect(ran.exitCode == 0, "\(ran.output)\(ran.errors)")
    }

    @Test("wrong arguments and files are no verdict")
    func errors() async throws {
        #expect(try await check(["anna", "c1", "publish", "a/#"]).exitCode == 64)
        #expect(try await check(["anna", "c1", "subscribe", "a#"]).exitCode == 64)
        #expect(try await check(["anna", "c1", "read", "a"]).exitCode == 64)
        #expect(try await run(["acl", "check", "a", "c", "publish", "t"]).exitCode == 64)
        let missing = try await run(
            ["acl", "check", "a", "c", "publish", "t", "--file", "/nonexistent/acl"])
        #expect(missing.exitCode == 2)
        #expect(missing.errors.contains("ENOENT"))
        let folder = try TemporaryFolder()
        let bad = try folder.write("allow all\n", to: "acl")
        let malformed = try await run(["acl", "check", "a", "c", "publish", "t", "--file", bad])
        #expect(malformed.exitCode == 2)
        #expect(malformed.errors.contains("\(bad):1: "))
    }

    @Test("the file can come from the configuration, and config check reads it")
    func configuration() async throws {
        let folder = try TemporaryFolder()
        let acl = try folder.write(Self.file, to: "acl")
        let config = try folder.write("acl_file: \(acl)\n", to: "hermes.yaml")
        let asked = try await run(
            ["acl", "check", "anna", "c", "subscribe", "orders/anna", "--config", config])
        #expect(asked.exitCode == 0)
        #expect(try await run(["config", "check", config]).output == "\(config): ok\n")
        _ = try folder.write("allow all\n", to: "acl")
        #expect(try await run(["config", "check", config]).exitCode == 2)
        _ = try folder.write("# nobody\n", to: "acl")
        let empty = try await run(["config", "check", config])
        #expect(empty.exitCode == 0)
        #expect(empty.errors.contains("holds no rule"))
    }
}
