import MQTTCore
import Structures
import Testing

@testable import BrokerCore

@Suite("GroupChoices")
struct GroupChoicesTests {
    @Test("groups of full members ask fewer once those before them have asked many")
    func mostAsked() {
        var choices = GroupChoices()
        choices.begin()
        let first = choices.mostAsked
        #expect(first == SharedSubscriptions.mostSearched)
        var asked = 0
        for _ in 0..<1_024 {
            // Both rings are full.
            asked += 2 * choices.mostAsked
            choices.steps += 2 * choices.mostAsked
        }
        #expect(asked < 24_000, "\(asked) members for 1,024 groups")
        #expect(choices.mostAsked == 8, "every group asks some")
        _ = choices.takeSteps()
        #expect(choices.mostAsked == 8, "also after the work was counted")
        choices.begin()
        let next = choices.mostAsked
        #expect(next == first)
    }
}
