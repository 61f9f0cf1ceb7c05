import Testing

@testable import BrokerRuntime

@Suite("Settled state")
struct SettledStateTests {
    @Test("it lifts the limit once, and ends below it")
    func once() {
        var state = SettledState()
        #expect(state.limit(800) == 800)
        let begins = state.begins(used: 1_000, limit: 800)
        #expect(begins && state.isSettled)
        #expect(state.limit(800) == 1_100)
        // Connections have taken what was left: they have to wait for others to go.
        let beginsAgain = state.begins(used: 1_100, limit: 800)
        #expect(!beginsAgain)
        #expect(state.limit(800) == 1_100)
        let ends = [760, 759, 759].map { state.ends(used: $0, limit: 800) }
        #expect(ends == [false, true, false])
        #expect(state == SettledState())
    }

    @Test("with enough memory there is none")
    func enough() {
        var state = SettledState()
        let begins = [759, 760].map { state.begins(used: $0, limit: 800) }
        #expect(begins == [false, true])
        #expect(state.limit(800) == 900)
        // A reload may raise the limit.
        #expect(state.limit(8_000) == 9_000)
        let ends = state.ends(used: 760, limit: 8_000)
        #expect(ends)
    }
}
