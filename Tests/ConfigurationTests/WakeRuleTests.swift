import BrokerAPI
import Testing
import TimeZones

@testable import OperatorConfiguration

@Suite("Rules of notifications")
struct WakeRuleTests {
    private static let format = ValueFormat<[WakeRule]>.wakeRules

    @Test("each part of a rule has its place")
    func parts() throws {
        let text =
            "alert orders/# title=T subtitle=S_{a} body={a}_{b}B args=order+status sound=default badge thread=all category=C level=critical channel=news mutable quiet=21:00-06:30+drop uncapped priority=10 expires=90s fields=a"
        let rule = try #require(try Self.format.read(text).first)
        #expect(rule.subtitleKey == "S_{a}")
        #expect(rule.bodyKey == "{a}_{b}B")
        #expect(rule.arguments == ["order", "status"])
        #expect(rule.thread == .name("all"))
        #expect(rule.category == "C")
        #expect(rule.level == .critical)
        #expect(rule.channel == "news")
        #expect(rule.quiet == .hours(QuietHours("21:00-06:30"), drops: true))
        #expect(rule.isUncapped)
        #expect(rule.isMutable)
        #expect(rule.priority == 10)
        #expect(rule.expiresInSeconds == 90)
        let again = try Self.format.read(Self.format.write([rule]))
        #expect(again == [rule])
    }

    @Test("calls, talks and Live Activities are written as they are read")
    func forms() throws {
        let text =
            "voip a expires=5s fields=b,pushtotalk a,liveactivity a event=end priority=5 fields=b,alert a quiet=off,alert b quiet=drop"
        let rules = try Self.format.read(text)
        #expect(rules.map(\.kind) == [.voip, .pushToTalk, .liveActivity, .alert, .alert])
        #expect(rules[2].endsActivity)
        #expect(rules[3].quiet == .off)
        #expect(rules[4].quiet == .hours(nil, drops: true))
        #expect(Self.format.write(rules) == text)
    }

    @Test(
        "what Apple would refuse, or what no rule knows, is refused with a cure",
        arguments: [
            ("alert a level=loud", "time-sensitive"),
            ("alert a priority=7", "10 (at once)"),
            ("background a priority=10", "priority=5 or priority=1"),
            ("voip a priority=10", "priority 10 only"),
            ("pushtotalk a priority=5", "priority 10 only"),
            ("voip a badge", "Begin the rule with alert"),
            ("voip a title=T", "Begin the rule with alert"),
            ("pushtotalk a sound=s", "Begin the rule with alert"),
            ("voip a quiet=off", "Begin the rule with alert"),
            ("liveactivity a", "fields=status"),
            ("liveactivity a fields=b priority=1", "priority=5"),
            ("liveactivity a fields=b title=T", "Begin the rule with alert"),
            ("liveactivity a fields=b event=start", "Known are"),
            ("alert a event=end", "Begin the rule with liveactivity"),
            ("call a", "pushtotalk"),
            ("alert a quiet=22-7", "quiet=22:00-07:00"),
            ("alert a quiet=drop+drop", "quiet=22:00-07:00"),
            ("alert a quiet=off+drop", "quiet=22:00-07:00"),
            ("alert a quiet=22:00-07:00+22:00-07:00", "quiet=22:00-07:00"),
            ("alert a uncapped=1", "Known are"),
            ("background a quiet=off", "Begin the rule with alert"),
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

@Suite("Apps with service accounts of their own")
struct GoogleAppTests {
    private static let format = ValueFormat<[HermesConfiguration.GoogleApp]>.googleApps

    @Test("an app has one service account")
    func parts() throws {
        let text = "a.b service_account=/a.json,c service_account=/c.json"
        let apps = try Self.format.read(text)
        #expect(apps.map(\.bundle) == ["a.b", "c"])
        #expect(apps.map(\.account) == ["/a.json", "/c.json"])
        #expect(Self.format.write(apps) == text)
    }

    @Test(
        "what is no app with an account is refused with a cure",
        arguments: [
            "a.b", "a/b service_account=/a.json", "a.b service_account=", "a.b account=/a.json",
            "a.b service_account=/a service_account=/b",
            "a.b service_account=/a,a.b service_account=/b",
            (0...64).map { "a\($0) service_account=/a" }.joined(separator: ","),
        ])
    func refused(_ text: String) {
        let error = #expect(throws: RefusedValue.self) { _ = try Self.format.read(text) }
        #expect(error?.cure.isEmpty == false)
    }
}
