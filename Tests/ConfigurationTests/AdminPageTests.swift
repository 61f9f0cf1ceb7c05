import Testing

@testable import OperatorConfiguration

@Suite("admin.page")
struct AdminPageTests {
    @Test(
        "auto serves the page on loopback only; on and off decide themselves",
        arguments: [
            ("127.0.0.1", "auto", true), ("::1", "auto", true), ("localhost", "auto", true),
            ("0.0.0.0", "auto", false), ("192.0.2.1", "auto", false), ("::", "auto", false),
            ("0.0.0.0", "on", true), ("127.0.0.1", "off", false),
        ])
    func choice(address: String, page: String, isServed: Bool) throws {
        var admin = HermesConfiguration.Admin()
        #expect(admin.page == .auto)
        admin.address = address
        admin.page = try #require(HermesConfiguration.Admin.Page(rawValue: page))
        #expect(admin.servesPage == isServed)
    }
}
