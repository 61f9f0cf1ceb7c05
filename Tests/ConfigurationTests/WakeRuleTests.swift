import BrokerAPI
import Testing

@testable import OperatorConfiguration

@Suite("Rules of notifications")
struct WakeRuleTests {
    private static let format = ValueFormat<[WakeRule]>.wakeRules

    @Test("each part of a rule has its place")
    func parts() throws {
        let text =
            "alert orders/# title=T subtitle=S_{a} body={a}_{b}B args=order+status sound=default badge thread=all category=C level=critical mutable priority=10 expires=90s fields=a"
        let rule = try #require(try Self.format.read(text).first)
        #expect(rule.subtitleKey == "S_{a}")
        #expect(rule.bodyKey == "{a}_{b}B")
        #expect(rule.arguments == ["order", "status"])
        #expect(rule.thread == .name("all"))
        #expect(rule.category == "C")
        #expect(rule.level == .critical)
        #expect(rule.isMutable)
        #expect(rule.priority == 10)
        #expect(rule.expiresInSeconds == 90)
        let again = try Self.format.read(Self.format.write([rule]))
        #expect(again == [rule])
    }

    @Test(
        "what Apple would refuse, or what no rule knows, is refused with a cure",
        arguments: [
            ("alert a level=loud", "time-sensitive"),
            ("alert a priority=7", "10 (at once)"),
            ("background a priority=10", "priority=5 or priority=1"),
            ("background a thread", "Begin the rule with alert"),
            ("background a args=x", "Begin the rule with alert"),
            ("alert a expires=soon", ""),
            ("alert a mutable=1", "Known are"),
            ("alert a threads=x", "Known are"),
            ("alert a thread thread=x", "Give it once"),
            ("alert a args=", "as the app has it"),
            ("alert a body=A_{}", "ORDER_{status}"),
            ("alert a body=A_{b", "ORDER_{status}"),
            ("alert a title=A_b}", "ORDER_{status}"),
            ("alert a subtitle={{b}}", "ORDER_{status}"),
            ("alert a args=\(Array(repeating: "a", count: 17).joined(separator: "+"))", "small"),
        ])
    func refused(_ text: String, cure: String) {
        let error = #expect(throws: RefusedValue.self) { _ = try Self.format.read(text) }
        #expect(cure.isEmpty || error?.cure.contains(cure) == true, "\(error?.cure ?? "")")
    }
}

@Suite("Apps with keys of their own")
struct AppleAppTests {
    private static let format = ValueFormat<[HermesConfiguration.AppleApp]>.appleApps

    @Test("an app has a key or a certificate, for one environment or both")
    func parts() throws {
        let text =
            "a.b key_file=/k key_id=AAAAAAAAA1 team_id=TTTTTTTTT1,a.b certificate=/c certificate_key=/d environment=sandbox"
        let apps = try Self.format.read(text)
        #expect(
            apps == [
                HermesConfiguration.AppleApp(
                    bundle: "a.b", environment: nil,
                    proof: .key(file: "/k", keyID: "AAAAAAAAA1", teamID: "TTTTTTTTT1")),
                HermesConfiguration.AppleApp(
                    bundle: "a.b", environment: .sandbox,
                    proof: .certificate(file: "/c", keyFile: "/d", passwordFile: nil)),
            ])
        #expect(Self.format.write(apps) == text)
    }

    @Test(
        "what is half or twice is refused with a cure",
        arguments: [
            ("", "com.example.app"), ("a/b certificate=/c", "com.example.app"),
            ("a", "key_id= and team_id="), ("a key_file=/k key_id=AAAAAAAAA1", "team_id="),
            ("a certificate=/c key_file=/k", "or certificate="),
            ("a certificate=/c certificate=/d", "each once"), ("a certificate=", "each once"),
            ("a team=T", "each once"), ("a certificate=/c environment=test", "for both"),
            ("a key_file=/k key_id=short team_id=TTTTTTTTT1", "Copy the identifier of the key"),
            ("a certificate=/c,a certificate=/d", "once for each environment"),
        ])
    func refused(_ text: String, cure: String) {
        let error = #expect(throws: RefusedValue.self) { _ = try Self.format.read(text) }
        #expect(error?.cure.contains(cure) == true, "\(error?.cure ?? "")")
    }
}
